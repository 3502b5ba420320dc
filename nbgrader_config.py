"""nbgrader's configuration for this course.

COURSE_LANG=en (default) or zh chooses the edition; both editions share one gradebook.
FLASHCOURSE_SEED chooses the inputs of the hidden tests.
"""

from flashcourse import grading
from flashcourse.authoring import release
from flashcourse.collecting import plugin as collecting
from flashcourse.words import course_language

c = get_config()  # noqa: F821 (nbgrader puts it here)

c.CourseDirectory.course_id = "flashcourse"
release.configure(c, course_language())
collecting.configure(c)
grading.configure(c)
