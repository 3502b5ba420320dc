"""Hand in the sample class, grade it, write the feedback, compare the marks with those deserved.

All of it happens in build/demo, a course of its own: your gradebook and students stay untouched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from sample_class import Submission, hand_in, lessons, sample_class

ROOT = Path(__file__).parents[1]
COURSE = ROOT / "build" / "demo"


def main() -> int:
    lay_out_course()
    wrong = 0
    for lesson in lessons():
        run("nbgrader", "generate_assignment", lesson, "--force", "--log-level=WARN")
        students = sample_class(lesson)
        for student in students:
            hand_in(student, COURSE)
        results = COURSE / f"{lesson}.json"
        run("flashcourse", "grade", lesson, "--json", str(results))
        run("nbgrader", "generate_feedback", lesson, "--force", "--log-level=ERROR")
        wrong += compare(students, json.loads(results.read_text(encoding="utf-8")))
    run("nbgrader", "export", "--log-level=WARN", "--to", "grades.csv")
    print(f"\nFeedback pages: {relative(COURSE / 'feedback')}")
    print(f"Marks:          {relative(COURSE / 'grades.csv')}")
    print(f"To look around: cd {relative(COURSE)} && nbgrader formgrade")
    return report(wrong)


def lay_out_course() -> None:
    """A fresh course in build/demo with this course's configuration and notebooks."""
    shutil.rmtree(COURSE, ignore_errors=True)
    COURSE.mkdir(parents=True)
    shutil.copy(ROOT / "nbgrader_config.py", COURSE)
    for station in ("source", "release"):
        shutil.copytree(ROOT / station, COURSE / station)


def run(*command: str) -> None:
    """Run a command in the demo's course; stop the demo if it fails."""
    print(f"\n$ {' '.join(command)}", flush=True)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=COURSE, env=environment)
    if done.returncode:
        sys.exit(f"{command[0]} failed with status {done.returncode}")


def compare(students: list[Submission], results: Any) -> int:
    """Print each student's marks beside what they deserve; how many differ."""
    by_student = {result["student"]: result for result in results["submissions"]}
    wrong = 0
    print(f"\n{'student':26} {'outcome':12} {'marks':>7} {'deserved':>9}")
    for student in students:
        result = by_student[student.student]
        got = {name: points for name, points in result["points"].items() if name in student.marks}
        outcome = result["outcome"]["kind"]
        same = got == student.marks and outcome == student.outcome
        wrong += not same
        total, deserved = sum(got.values()), sum(student.marks.values())
        note = "" if same else "   <- not what is deserved"
        print(f"{student.student:26} {outcome:12} {total:7g} {deserved:9g}{note}")
        if not same:
            print_differences(student, got, outcome)
    return wrong


def print_differences(student: Submission, got: dict[str, float], outcome: str) -> None:
    print(f"    outcome {outcome!r}, deserved {student.outcome!r}")
    for name, points in student.marks.items():
        if got.get(name) != points:
            print(f"    {name}: {got.get(name)} instead of {points}")


def report(wrong: int) -> int:
    if wrong:
        print(f"\n{wrong} students did not get the marks they deserve.")
        return 1
    print("\nEvery student got the marks they deserve.")
    return 0


def relative(path: Path) -> str:
    return os.path.relpath(path, Path.cwd())


if __name__ == "__main__":
    sys.exit(main())
