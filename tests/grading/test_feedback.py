"""The page that goes back to a student."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbconvert.exporters import HTMLExporter
from nbformat.notebooknode import from_dict
from nbgrader.api import Gradebook
from nbgrader.apps import GenerateFeedbackApp
from traitlets.config import Config

from flashcourse.grading import configure
from flashcourse.grading.feedback import feedback_page
from flashcourse.grading.grade import finished
from flashcourse.grading.gradebook import MarksWriter
from flashcourse.grading.outcome import Graded
from flashcourse.grading.outputs import checked_outputs

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


SHOWN = r"""
from IPython.display import *
display(HTML('<script>RUN</script><img src=x onerror=RUN><a href="javascript:RUN">x</a>'))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" onload="RUN"><script>RUN</script></svg>'))
display(Javascript('RUN'), Markdown('<script>RUN</script>'), Latex(r'$\href{javascript:RUN}{x}$'))
size = {'image/png': {'width': '1" onload="RUN'}}
display({'image/png': 'iVBORw0KGgo='}, raw=True, metadata=size)
display({'image/png': 'x" onload="RUN', 'text/vnd.mermaid': '<script>RUN</script>'}, raw=True)
raise type('<script>RUN</script>', (Exception,), {})('<script>RUN</script>')
"""


def test_nothing_of_a_submission_runs_in_the_formgrader(run: Run) -> None:
    config = Config()
    configure(config)
    words = {"thinking": r"<script>RUN</script> $\href{javascript:RUN}{x}$ [x](javascript:RUN)"}
    submitted = tiny.submitted({**tiny.RIGHT, **words}, after={"start": SHOWN})
    notebook = from_dict(finished(run(submitted)))
    html, _ = HTMLExporter(config=config).from_notebook_node(notebook)
    body = html[html.index("<main") :]
    assert "iVBORw0KGgo=" in body
    for danger in (r"<script>", r"<[^>]*\son\w+=", r"<[^>]*javascript:"):
        assert not re.search(danger, body), danger
    # MathJax, which works outside <pre> only, would make a link of it.
    assert "javascript:" not in re.sub(r"<pre>.*?</pre>", "", body, flags=re.DOTALL)


def test_pictures_in_an_answer_reach_the_formgrader_and_nothing_else_that_is_attached(
    run: Run,
) -> None:
    config = Config()
    configure(config)
    colab = "![pasted](data:image/jpeg;base64,/9j/4AAQ)"
    words = f"![paper](attachment:p.png) {colab} ![x](attachment:x.svg)"
    words += " ![y](attachment\\:y) ![z](attachment&#58;z) [a][b]\n\n[b]: attachment:picture-9.png"
    submitted = tiny.submitted({**tiny.RIGHT, "thinking": words})
    (answer,) = [cell for cell in submitted["cells"] if cell["id"] == "thinking"]
    answer["attachments"] = {
        "p.png": {"image/png": "iVBORw0KGgo="},
        "x.svg": {"image/svg+xml": "PHN2ZyBvbmxvYWQ9UlVOLz4="},
        "y.png": {"image/png": '" onload="RUN'},
    }
    notebook = from_dict(finished(run(submitted)))
    html, _ = HTMLExporter(config=config).from_notebook_node(notebook)
    body = html[html.index("<main") :]
    for picture in ("data:image/png;base64,iVBORw0KGgo=", "data:image/jpeg;base64,/9j/4AAQ"):
        assert picture in body
    assert "svg+xml" not in body and "onload" not in body


@pytest.mark.parametrize("metadata", [5, [["a"]], None, "x"])
def test_an_output_with_forged_metadata_is_left_out(metadata: Any) -> None:
    forged = {"output_type": "display_data", "data": {"text/plain": "x"}, "metadata": metadata}
    assert checked_outputs([forged]) == []


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
    assert "can&#x27;t be read: it is not valid JSON (" in page(run(b"{"))


def test_why_it_was_stopped_is_in_the_students_language(run: Run) -> None:
    endless = {**tiny.RIGHT, "size": "while True:\n    pass"}
    assert "运行超时，已停止（单元格 size）：4 秒。" in page(run(tiny.submitted(endless, "zh")))


def test_what_is_for_the_instructor_is_not_on_the_page(run: Run) -> None:
    graded = run(tiny.submitted({**tiny.RIGHT, "scale": f"import gc\n{tiny.RIGHT['scale']}"}))
    assert graded.doubts
    doubts = finished(graded)["cells"][0]
    assert doubts["id"] == "doubts"
    assert "scale, line 1: `gc` looks for objects" in doubts["source"]
    assert "scale，第 1 行：`gc` 寻找评分程序的对象" in doubts["source"]
    assert "grader" not in page(graded)


def feedback(root: Path) -> str:
    """What `nbgrader generate_feedback` writes for Ada."""
    tiny.nbgrader(root, GenerateFeedbackApp, tiny.LESSON, "--force")
    return (root / "feedback" / "ada" / tiny.LESSON / f"{tiny.LESSON}.html").read_text("utf-8")


@pytest.mark.parametrize(
    "lang, total, part, marked",
    [
        ("en", "mark thinking. Up to 4 points can be added.", "Not marked yet, 4 points possible",
         "0 of 4 points"),
        ("zh", "thinking 由老师批改，目前还没有批改，最多可再得 4 分。", "待老师批改，满分 4 分",
         "得分 0 / 4"),
    ],
)  # fmt: skip
def test_a_total_is_not_final_until_a_person_has_marked_the_answers_in_words(
    run: Run, tmp_path: Path, lang: str, total: str, part: str, marked: str
) -> None:
    root = tiny.make_course(tmp_path / "course", config=True)
    tiny.release(root)
    tiny.hand_in(root, "ada", notebook := tiny.submitted({**tiny.RIGHT, "thinking": "?"}, lang))
    graded = run(notebook)
    path = root / "autograded" / "ada" / tiny.LESSON / f"{tiny.LESSON}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(finished(graded)), "utf-8")
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        MarksWriter(book, tiny.LESSON).store("ada", {tiny.LESSON: graded.summary()})
        html = feedback(root)
        assert total in html and part in html and marked not in html
        book.find_grade("thinking", tiny.LESSON, tiny.LESSON, "ada").manual_score = 0
        book.db.commit()
    html = feedback(root)
    assert total not in html and part not in html and marked in html


def test_an_answer_in_words_that_was_left_out_waits_for_nobody(run: Run) -> None:
    assert "Not marked yet" not in page(run(tiny.submitted(tiny.RIGHT)))
