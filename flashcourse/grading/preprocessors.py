"""The grading steps for nbgrader's own commands and the formgrader's button."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat.notebooknode import NotebookNode, from_dict
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor

from flashcourse.grading.course import CourseError, CourseNotebook, load_course
from flashcourse.grading.grade import Settings, blank, finished, grade
from flashcourse.grading.gradebook import MarksWriter
from flashcourse.grading.pool import shared_pool
from flashcourse.grading.submission import Unreadable, read_file
from flashcourse.words import course_language

Resources = dict[str, Any]
ALLOW = "FLASHCOURSE_ALLOW_UNSANDBOXED"


class LenientExporter(NotebookExporter):
    """Reads a notebook that is none as an empty one: what becomes of it is decided later."""

    def from_filename(self, filename: str, resources: Any = None, **kw: Any) -> Any:
        try:
            return super().from_filename(filename, resources=resources, **kw)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            self.log.warning("%s can't be read: %s", filename, error)
            resources = self._init_resources(resources)
            empty = nbformat.v4.new_notebook()
            return self.from_notebook_node(empty, resources=resources, **kw)


class _CourseStep(NbGraderPreprocessor):
    """A step that needs the course's folder and the submitted file."""

    def course_folder(self) -> CourseDirectory:
        part: Any = self
        while part is not None:
            if isinstance(getattr(part, "coursedir", None), CourseDirectory):
                return part.coursedir
            part = part.parent
        raise CourseError("this step runs inside nbgrader's autograde only")

    def editions(self, resources: Resources) -> dict[str, CourseNotebook]:
        names, root = resources["nbgrader"], Path(self.course_folder().root)
        notebooks = load_course(root, names["assignment"])
        if names["notebook"] not in notebooks:
            raise CourseError(
                f"no notebook {names['notebook']!r} in lesson {names['assignment']!r}"
            )
        return notebooks[names["notebook"]]

    def submitted(self, resources: Resources) -> bytes | Unreadable:
        names, folder = resources["nbgrader"], self.course_folder()
        where = folder.format_path(
            folder.submitted_directory, names["student"], names["assignment"]
        )
        try:
            return read_file(Path(folder.root, where, f"{names['notebook']}.ipynb"))
        except Unreadable as error:
            return error


class Reassemble(_CourseStep):
    """Replace the submitted notebook by the release's, with the student's cells in it."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        data, editions = self.submitted(resources), self.editions(resources)
        return from_dict(blank(data, editions, course_language())), resources


class RunApart(_CourseStep):
    """Run the student's cells in a sandbox and the tests apart from them."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        pool = shared_pool(Path(self.course_folder().root), bool(os.environ.get(ALLOW)))
        data, editions = self.submitted(resources), self.editions(resources)
        graded = grade(data, editions, pool, Settings.from_environment(), course_language())
        self.log.info("%s: %s", resources["nbgrader"]["student"], graded.outcome.text().en)
        return from_dict(finished(graded)), resources


class SaveMarks(NbGraderPreprocessor):
    """Write the marks that RunApart gave to the gradebook, in one transaction."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as gradebook:
            writer = MarksWriter(gradebook, names["assignment"])
            writer.store(names["student"], {names["notebook"]: nb.metadata.flashcourse.grading})
        return nb, resources
