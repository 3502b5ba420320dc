"""From a lesson written once to the instructor's and the student's notebooks in both languages.

The path of a lesson, one module a step:

- `lesson`     read notebooks/<lesson>.md: front matter, cells, keys, options
- `twins`      refuse a lesson whose two languages drift apart
- `language`   keep one language of code, comments and strings
- `figures`    carry pictures inside the Markdown cells
- `edition`    put together the instructor's notebook of one language
- `release`    what nbgrader does with it: solutions, explanations and hidden tests go
- `build`      all of it, to files, and the comparison with what is committed
"""


def tr(en: str, zh: str) -> str:
    """The string of the reader's language.

    In a lesson as it stands this runs; the builder replaces the whole call by one of the two
    literals, so that a student's notebook holds one language and no trace of the other.
    """
    from flashcourse.words import Text, course_language

    return Text(en, zh).in_(course_language())
