"""Cheats that a record does not show are put before a human eye; honest answers are not."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from pathlib import Path

import pytest
from wheat_and_chaff.wheat import WHEAT
from wheat_and_chaff.whole_rows import HEAD, ROWS

from flashcourse.grading.assemble import assemble
from flashcourse.grading.course import CourseNotebook, load_course
from flashcourse.grading.doubts import doubts_of
from flashcourse.grading.grade import Settings, grade
from flashcourse.grading.limits import Limits
from flashcourse.grading.pool import Pool
from flashcourse.grading.submission import read_submission

from .test_lesson import LESSON, NAME, ROOT, answered

EXP = "p = torch.exp(s)"


def by_rows(weights: str, before: str = "") -> str:
    return HEAD + before + ROWS.replace("{p}", f"        {weights}")


def hidden(how: str, before: str = "") -> str:
    """All keys at once, with the recorder's eyes shut."""
    body = textwrap.indent(ROWS.replace("{p}", f"        {EXP}"), "    ")
    return f"{HEAD}{before}    with {how}:\n{body}"


def of_wheat(name: str) -> str:
    source = inspect.getsource(WHEAT[name])
    return re.sub(r"def wheat_\w+\(", f"def {NAME}(", source, count=1)


READ = {
    "inner module": (hidden("torch._C._DisableTorchDispatch()"), "_C"),
    "inner module, imported": (hidden("c._D()", "    from torch import _C as c\n"), "_C"),
    "inner module, by a pattern": (
        hidden("off()", "    match torch:\n        case object(_C=off):\n            pass\n"),
        "_C",
    ),
    "module handed on": (hidden("t.off()", "    t = torch\n"), "`torch` is a module, handed on"),
    "by name": (hidden("get(torch)", "    from operator import attrgetter as get\n"), "attrgetter"),
    "modes switched off": (
        hidden("off()", "    from torch.utils._python_dispatch import _disable_modes as off\n"),
        "torch.utils._python_dispatch",
    ),
    "threads of torch's": (by_rows(EXP, "    torch.threading.Thread(target=len)\n"), "threading"),
    "threads in a pool": (by_rows(EXP, "    import concurrent.futures\n"), "concurrent.futures"),
    "inner operators": (HEAD + "    return torch.ops.aten._flash(q, k, v)", "ops"),
    "NumPy": (by_rows("p = torch.from_numpy(np.exp(s.numpy()))"), "np.exp"),
    "plain Python": (by_rows("p = torch.tensor([math.exp(x) for x in s.tolist()])"), "tolist"),
    "sigmoid": (by_rows("p = torch.sigmoid(s) / torch.sigmoid(-s)"), "sigmoid"),
    "a tensor of its own": (
        f"class T(torch.Tensor):\n    pass\n{by_rows(EXP)}",
        "`T` makes values",
    ),
    "the course's tools": (HEAD + "    return exact_attention(q, k, v)", "exact_attention"),
    "too deep to read": (f"x = {'-' * 50_000}1\n{by_rows(EXP)}", "can't be read"),
}


@pytest.fixture(scope="module")
def lesson() -> dict[str, CourseNotebook]:
    return load_course(ROOT, LESSON)[LESSON]


def said(lesson: dict[str, CourseNotebook], answer: str | None, own: str = "") -> list[str]:
    """The doubts that reading alone gives."""
    data = answered(answer, own) if answer is not None else own_cell(own)
    return [doubt.en for doubt in doubts_of(assemble(lesson["en"], read_submission(data)))]


def own_cell(own: str) -> bytes:
    notebook = json.loads((ROOT / "release" / "en" / LESSON / f"{LESSON}.ipynb").read_text("utf-8"))
    notebook["cells"].insert(3, {"cell_type": "code", "metadata": {}, "source": own})
    return json.dumps(notebook).encode()


@pytest.mark.parametrize("name", READ)
def test_an_answer_that_could_hide_something_is_a_doubt(
    lesson: dict[str, CourseNotebook], name: str
) -> None:
    answer, word = READ[name]
    own = "import numpy as np" if name == "NumPy" else ""
    assert any(word in doubt for doubt in said(lesson, answer, own)), said(lesson, answer, own)


def test_a_cell_of_their_own_that_an_answer_uses_is_read_as_an_answer(
    lesson: dict[str, CourseNotebook],
) -> None:
    own = "def helper(s):\n    return torch.sigmoid(s)"
    assert said(lesson, by_rows("p = helper(s)"), own) != []
    assert said(lesson, by_rows(EXP), own) == []


HONEST_CELLS = [
    "%matplotlib inline\n!pip install einops\n%timeit torch.exp(torch.zeros(3))",
    "%%time\nfor i in range(3):\n    print(i)",
    "import pandas as pd\nimport matplotlib.pyplot as plt\nplt.plot(torch.zeros(3).numpy())",
    "torch.softmax(torch.zeros(3), 0)\ntorch.nn.functional.scaled_dot_product_attention",
    "class State:\n    def __init__(self):\n        self._m = 0",
    "print(torch.__version__)\nhelp(torch)",
    "x = (1,",
]


@pytest.mark.parametrize("own", HONEST_CELLS)
def test_trying_things_out_is_no_doubt(lesson: dict[str, CourseNotebook], own: str) -> None:
    assert said(lesson, None, own) == []


def test_a_magic_with_code_in_it_is_read(lesson: dict[str, CourseNotebook]) -> None:
    for own in ("%time __import__('os')", "%%timeit\nimport gc", "!curl x", "%%bash\nls", "/len x"):
        assert len(said(lesson, None, own)) == 1, own


# Right, but nobody can tell by a record: NumPy is not recorded, and softmax over the keys of a tile
# is written as softmax over all keys is. A person has to look.
UNSEEN = {
    "wheat_numpy_inside": {"np.exp"},
    "wheat_softmax_per_tile_then_merged": {"softmax"},
    "wheat_partial_results_merged_at_once": {"softmax"},
}


@pytest.mark.parametrize("name", WHEAT)
def test_a_right_answer_is_no_doubt(lesson: dict[str, CourseNotebook], name: str) -> None:
    doubts = said(lesson, f"import numpy as np\n{of_wheat(name)}")
    found = {word for doubt in doubts for word in re.findall("`(.*?)`", doubt)}
    assert found >= UNSEEN.get(name, set())
    assert found == set() or name in UNSEEN


RUN = {
    "exponentials out of sight": (READ["NumPy"][0], "exponentials"),
    "a power for an exponential": (by_rows("p = torch.exp(s / 64) ** 64"), "at once"),
    "nothing comes of many rows": (
        of_wheat("wheat_triton_names").replace("):\n", "):\n    assert len(q) < 1000\n", 1),
        "did not come back",
    ),
}


@pytest.mark.parametrize("name", RUN)
def test_what_a_record_does_not_show_of_a_right_result_is_a_doubt(
    pool: Pool, lesson: dict[str, CourseNotebook], name: str
) -> None:
    answer, words = RUN[name]
    settings = Settings(limits=Limits(cell_seconds=20.0), seed=3)
    graded = grade(answered(answer, "import numpy as np"), lesson, pool, settings)
    assert any(words in doubt.en for doubt in graded.doubts), graded.doubts


def test_every_lesson_has_solutions_without_a_doubt() -> None:
    for path in sorted(Path(ROOT, "source", "en").glob("*/*.ipynb")):
        edition = load_course(ROOT, path.stem)[path.stem]["en"]
        assert doubts_of(assemble(edition, read_submission(path.read_bytes()))) == ()


OUT_OF_SIGHT = """\
import numpy as np
def flash_attention_backward_sim(q, k, v, out, L, dout, block_size=2):
    Q, K, V, O, l, dO = (t.numpy() for t in (q, k, v, out, L, dout))
    P = np.exp(Q @ K.T / np.sqrt(Q.shape[1]) - l)
    dS = P * (dO @ V.T - (dO * O).sum(1, keepdims=True)) / np.sqrt(Q.shape[1])
    return tuple(map(torch.from_numpy, (dS @ K, dS.T @ Q, P.T @ dO)))
"""


def test_whoever_leaves_torch_where_tiles_are_asked_for_is_looked_at_in_other_lessons_too() -> None:
    name = "04_v1_to_v2"
    course = load_course(ROOT, name)[name]["en"]
    notebook = json.loads((ROOT / "release" / "en" / name / f"{name}.ipynb").read_text("utf-8"))
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "flash-backward":
            cell["source"] = OUT_OF_SIGHT
    plan = assemble(course, read_submission(json.dumps(notebook).encode()))
    assert any("`np.exp` computes where nothing is recorded" in d.en for d in doubts_of(plan))
