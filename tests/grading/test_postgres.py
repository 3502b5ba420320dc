"""The gradebook in PostgreSQL, on a real server that this test starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from flashcourse import cli

from . import tiny
from .books import dump

NEEDS = "PostgreSQL's server is missing: sudo apt-get install postgresql"


def programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    assert found, NEEDS
    return found[-1].parent


def as_its_user(*command: object) -> None:
    """PostgreSQL refuses to run as root."""
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    words = [*prefix, *map(str, command)]
    done = subprocess.run(words, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()


@pytest.fixture()
def db_url() -> Iterator[str]:
    # Its socket's path must be short, and its user must reach it.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    data, control = folder / "data", programs() / "pg_ctl"
    as_its_user(programs() / "initdb", "-D", data, "-A", "trust", "-U", "course", "--no-sync")
    options = f"-k {folder} -h '' -F"
    as_its_user(control, "-D", data, "-o", options, "-w", "-l", folder / "log", "start")
    try:
        yield f"postgresql+psycopg2://course@/postgres?host={folder}"
    finally:
        as_its_user(control, "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def test_marks_go_to_postgresql_as_to_sqlite(
    tmp_path: Path, db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLASHCOURSE_SEED", "7")
    class_list = {"ada": tiny.submitted(tiny.RIGHT), "di": b"{", "flo": tiny.submitted()}
    books = []
    for name, url in (("sqlite", None), ("postgres", db_url)):
        root = tiny.make_course(tmp_path / name, config=True)
        if url:
            with (root / "nbgrader_config.py").open("a") as file:
                file.write(f"c.CourseDirectory.db_url = {url!r}\n")
        for student, notebook in class_list.items():
            tiny.hand_in(root, student, notebook)
        tiny.release(root)
        assert cli.main(["--course", str(root), "grade", tiny.LESSON]) == 0
        books.append(dump(root, url))
    assert books[0] == books[1]
    assert books[0]["ada"]["scores"]["test-scale"] == 10
