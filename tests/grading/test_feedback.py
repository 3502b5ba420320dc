"""The page that goes back to a student."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from nbformat.notebooknode import from_dict

from flashcourse.grading.feedback import feedback_page
from flashcourse.grading.grade import finished
from flashcourse.grading.outcome import Graded

from . import tiny

Run = Callable[..., Graded]


def page(graded: Graded) -> str:
    notebook = from_dict(finished(graded))
    for cell in notebook.cells:
        grading = cell.metadata.get("nbgrader")
        if grading:
            grading["score"], grading["comment"] = 0.0, None
    return feedback_page(notebook, {"score": 5.0, "max_score": 24.0, "late_penalty": 0})


WRONG = {**tiny.RIGHT, "scale": "def scale_rows(x):\n    return x"}


def test_no_test_source_hidden_or_not_is_on_the_page(run: Run) -> None:
    html = page(run(tiny.submitted(WRONG)))
    assert "test-scale" in html
    for word in ("SECRET_OF", "HIDDEN", "normalize", "assert", "1234509876", "torch.tensor"):
        assert word not in html


def test_the_page_says_what_each_exercise_got(run: Run) -> None:
    html = page(run(tiny.submitted(WRONG)))
    assert "5 of 24 points" in html
    assert "0 of 10 points" in html
    assert "Not right yet: a test failed." in html


def test_the_page_is_in_the_students_language(run: Run) -> None:
    html = page(run(tiny.submitted(WRONG, "zh")))
    assert 'lang="zh"' in html
    assert "得分 5 / 24" in html
    assert "还不对" in html


def test_an_error_of_the_students_is_shown_with_its_message(run: Run) -> None:
    code = "def scale_rows(x):\n    raise KeyError('where is it')"
    html = page(run(tiny.submitted({**tiny.RIGHT, "scale": code})))
    assert "KeyError" in html and "where is it" in html


def test_script_from_a_submission_is_only_text(run: Run) -> None:
    attack = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    code = f"def scale_rows(x):\n    raise KeyError('{attack}')\nprint('{attack}')"
    own = (
        "from IPython.display import HTML, Javascript, Markdown, SVG, display\n"
        f"display(HTML('{attack}'), Javascript('alert(3)'), Markdown('{attack}'))"
    )
    notebook = tiny.submitted(
        {**tiny.RIGHT, "scale": code, "thinking": f"[x](javascript:alert(4)) {attack}"},
        after={"start": own},
    )
    html = page(run(notebook))
    assert not re.search(r"<(script|img|iframe|svg|object)", html)
    assert not re.search(r"<[^>]*\bon\w+=", html)
    assert "href" not in html
    assert "default-src 'none'" in html


def test_a_card_is_cleaned_too(run: Run) -> None:
    graded = run(tiny.submitted(tiny.RIGHT))
    for cell in graded.notebook["cells"]:
        if cell["id"] == "test-partial":
            cell["outputs"] = [
                card_of("<div onclick='x'><style>p{}</style><script>1</script>ok</div>")
            ]
    html = page(graded)
    assert "ok</div>" in html
    assert "onclick" not in html and "<script" not in html
    assert html.count("<style>") == 1 and "p{}" in html


def card_of(html: str) -> dict[str, Any]:
    data = {"text/plain": "5", "text/html": html}
    return {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1}


def test_a_huge_output_and_a_huge_answer_make_a_small_page(run: Run) -> None:
    code = f"{tiny.RIGHT['scale']}\nprint('x' * 3_000_000)\n# {'y' * 500_000}"
    graded = run(tiny.submitted({**tiny.RIGHT, "scale": code}))
    shown = [o for c in graded.notebook["cells"] for o in c.get("outputs", []) if "text" in o]
    assert any("MB of output left out" in o["text"] for o in shown)
    assert len(page(graded)) < 60_000
    assert "characters left out" in page(graded)


def test_an_unreadable_file_has_a_page_that_says_so(run: Run) -> None:
    assert "can&#x27;t be read" in page(run(b"{"))


def test_what_is_for_the_instructor_is_not_on_the_page(run: Run) -> None:
    graded = run(tiny.submitted({**tiny.RIGHT, "scale": f"import gc\n{tiny.RIGHT['scale']}"}))
    assert graded.doubts
    assert finished(graded)["cells"][0]["id"] == "doubts"
    assert "grader" not in page(graded)
