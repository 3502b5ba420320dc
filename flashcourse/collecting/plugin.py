"""The same rules for `nbgrader zip_collect`: two plugins, set by `configure`.

zip_collect unpacks `downloaded/<lesson>/archive` into `extracted/`, then asks for each file whose
it is. Here the first step already matches and mends: what lies in `extracted/` afterwards is
laid out as in submitted/.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from nbgrader.plugins.zipcollect import ExtractorPlugin, FileNameCollectorPlugin
from traitlets.config import Config

from flashcourse.collecting.collect import Settings, collect
from flashcourse.collecting.report import report_lines
from flashcourse.collecting.roster import FILE, Roster, read_roster
from flashcourse.collecting.storage import save_record, store
from flashcourse.words import course_language


def configure(config: Config) -> None:
    """Let `nbgrader zip_collect` collect as `flashcourse collect` does."""
    config.ZipCollectApp.extractor_plugin = CollectingExtractor
    config.ZipCollectApp.collector_plugin = CollectedFiles


class CollectingExtractor(ExtractorPlugin):
    """Instead of unpacking, collect; then lay the result where zip_collect looks."""

    def extract(self, archive_path: str, extracted_path: str) -> None:
        lesson, root = Path(archive_path).parent.name, course_root(Path(archive_path))
        roster_path = root / FILE
        roster = read_roster(roster_path) if roster_path.is_file() else Roster()
        extracted, submitted = Path(extracted_path), root / "submitted"
        results = collect(root, lesson, [Path(archive_path)], Settings(roster), extracted)
        shutil.copytree(store(extracted, lesson), store(submitted, lesson), dirs_exist_ok=True)
        shutil.rmtree(extracted / ".collected")
        lines = list(report_lines(results, course_language()))
        report = save_record(submitted, lesson, results).with_name("report.txt")
        report.write_text("\n".join(lines) + "\n", encoding="utf-8")
        for line in lines:
            self.log.info(line)


class CollectedFiles(FileNameCollectorPlugin):
    """Files that CollectingExtractor wrote: <student>/<lesson>/<lesson>.ipynb."""

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        path = Path(submitted_file)
        if path.suffix != ".ipynb":
            return None
        found = {"student_id": path.parent.parent.name, "file_id": path.name}
        timestamp = path.with_name("timestamp.txt")
        if timestamp.is_file():
            found["timestamp"] = timestamp.read_text(encoding="utf-8").strip()
        return found


def course_root(path: Path) -> Path:
    """The nearest folder above `path` with an nbgrader_config.py."""
    for folder in path.resolve().parents:
        if (folder / "nbgrader_config.py").is_file():
            return folder
    raise FileNotFoundError(f"no nbgrader_config.py above {path}")
