"""What is right for each exercise, what it is worth, and what a wrong answer means."""

from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.registry import course_seed, exercises, mark

__all__ = ["Finding", "Marks", "course_seed", "exercises", "mark"]
