"""Collect, run in isolation, mark, report."""

from __future__ import annotations

from typing import Any


def configure(config: Any) -> None:
    """Let nbgrader's own commands grade as `flashcourse grade` does.

    For nbgrader_config.py: `configure(get_config())`. COURSE_LANG chooses source/<lang> and
    release/<lang>, FLASHCOURSE_SEED the hidden tests' inputs. `nbgrader autograde` and the
    formgrader's button then run submissions apart from the tests, and `nbgrader
    generate_feedback` writes pages without hidden tests.
    """
    from nbgrader.preprocessors import AssignLatePenalties, GetGrades

    from flashcourse.grading.export import OutcomeExportPlugin
    from flashcourse.grading.feedback import FeedbackExporter
    from flashcourse.grading.preprocessors import LenientExporter, Reassemble, RunApart, SaveMarks
    from flashcourse.words import course_language

    lang = course_language()
    config.CourseDirectory.source_directory = f"source/{lang}"
    config.CourseDirectory.release_directory = f"release/{lang}"
    config.Autograde.exporter_class = LenientExporter
    config.Autograde.sanitize_preprocessors = [Reassemble]
    config.Autograde.autograde_preprocessors = [RunApart, SaveMarks, AssignLatePenalties]
    config.GenerateFeedback.exporter_class = FeedbackExporter
    config.GenerateFeedback.preprocessors = [GetGrades]
    config.ExportApp.plugin_class = OutcomeExportPlugin
    # The formgrader shows submissions in the instructor's browser.
    config.HTMLExporter.sanitize_html = True
