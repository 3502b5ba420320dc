"""Where collected files lie.

submitted/<student>/<lesson>/<lesson>.ipynb      what is graded
submitted/.collected/<lesson>/originals/…        every file as it came, by student
submitted/.collected/<lesson>/collected.json     what was done to each, see `report`
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from flashcourse.collecting.incoming import Incoming
from flashcourse.collecting.notes import Note, doubt, repair
from flashcourse.collecting.records import Candidate, Collected


def write(submitted: Path, lesson: str, chosen: Candidate) -> tuple[str, list[Note]]:
    """Write the notebook to submitted/, unless a newer one is there; the outcome and notes."""
    folder = submitted / chosen.owner.student / lesson
    path = folder / f"{lesson}.ipynb"
    handed_in = chosen.owner.handed_in
    before = path.read_text(encoding="utf-8") if path.is_file() else None
    if before == chosen.text:
        return "unchanged", []
    earlier = read_timestamp(folder)
    if before is not None and earlier and handed_in and handed_in < earlier:
        return "older", [
            doubt("is older than what was collected before; left it", "比已收取的更旧；没有替换")
        ]
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(chosen.text, encoding="utf-8", newline="\n")
    if handed_in:
        (folder / "timestamp.txt").write_text(handed_in.isoformat(), encoding="utf-8")
    if before is None:
        return "taken", []
    return "taken", [repair("replaces what was collected before", "替换了之前收取的版本")]


def dates_before(submitted: Path, lesson: str) -> dict[str, datetime]:
    """By student the date of the file that was taken last."""
    return {
        entry["student"]: datetime.fromisoformat(entry["date"])
        for entry in read_record(submitted, lesson)
        if entry["outcome"] in ("taken", "unchanged") and entry["date"]
    }


def students_in(submitted: Path) -> set[str]:
    """Who handed in something before, in any lesson."""
    folders = submitted.iterdir() if submitted.is_dir() else ()
    return {folder.name for folder in folders if folder.is_dir() and folder.name[0] != "."}


def read_timestamp(folder: Path) -> datetime | None:
    try:
        return datetime.fromisoformat((folder / "timestamp.txt").read_text("utf-8").strip())
    except (OSError, ValueError):
        return None


def store(submitted: Path, lesson: str) -> Path:
    """Where collecting keeps its own files; nbgrader's `submitted/*/<lesson>` does not see it."""
    return submitted / ".collected" / lesson


def keep_original(submitted: Path, lesson: str, item: Incoming, student: str) -> None:
    """Keep the file as it came, once, under a name that can't clash."""
    if not item.data:
        return
    folder = store(submitted, lesson) / "originals" / (student or "unknown")
    folder.mkdir(parents=True, exist_ok=True)
    # 255 bytes are the most that a name can have; the end says what kind of file it is.
    name = item.name.encode("utf-8", "replace")[-200:].decode("utf-8", "ignore")
    (folder / f"{item.mark[:8]}-{name}").write_bytes(item.data)


def save_record(submitted: Path, lesson: str, results: list[Collected]) -> Path:
    """Add the results to collected.json; the newest word on each file stands.

    What was said before of a student's files is 'replaced' once another one is taken, and what was
    said of a file once the same bytes are taken under another name.
    """
    path = store(submitted, lesson) / "collected.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {(entry["student"], entry["path"]): entry for entry in read_record(submitted, lesson)}
    there = [r for r in results if r.outcome in ("taken", "unchanged")]
    students, marks = {r.student for r in there}, {r.mark for r in there}
    for entry in known.values():
        if entry["student"] in students or entry.get("mark") in marks:
            entry["outcome"] = "replaced"
    known.update({(r.student, r.path): as_data(r) for r in results})
    entries = [known[key] for key in sorted(known)]
    path.write_text(json.dumps(entries, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path


def read_record(submitted: Path, lesson: str) -> list[dict]:
    """What collecting wrote about a lesson's files; empty if nothing was collected."""
    path = store(submitted, lesson) / "collected.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def as_data(result: Collected) -> dict:
    notes = [{"kind": n.kind, "en": n.text.en, "zh": n.text.zh} for n in result.notes]
    return {**result.__dict__, "notes": notes}
