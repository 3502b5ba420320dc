"""A small lesson for the builder's tests, and ways to break it."""

from __future__ import annotations

from pathlib import Path

FRONT_MATTER = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
flashcourse:
  lesson: 90_small
  title: {en: "Small", zh: "小课"}
  minutes: 5
---
"""

SMALL = (
    FRONT_MATTER
    + '''
+++ {"key": "title", "lang": "en"}

# Squares

A score is $s = x^2$, computed by `square` in 3 steps; see [the paper](https://arxiv.org/abs/2205.14135).

+++ {"key": "title", "lang": "zh"}

# 平方

分数是 $s = x^2$，由 `square` 分 3 步算出；见[论文](https://arxiv.org/abs/2205.14135)。

```{code-cell} ipython3
:key: author
:only: author
from flashcourse.authoring import tr
```

```{code-cell} ipython3
:key: start
n = 3  # en: rows | zh: 行
print(tr("ready", "就绪"), n)
```

```{code-cell} ipython3
:key: answer-square
:answer: square
def square(x):
    """en: The square of x.
    zh: x 的平方。"""
    ### BEGIN SOLUTION
    # en: TODO 1: start
    # zh: TODO 1: 起步
    # y = ???

    # secret explanation: multiply x with itself
    y = x
    ### END SOLUTION
    for _ in range(1):
        pass
        ### BEGIN SOLUTION
        # en: TODO 2: multiply
        # zh: TODO 2: 相乘
        # y = ???
        y = y * x
        ### END SOLUTION
    return y
```

```{code-cell} ipython3
:key: test-square
:test: test-square
:points: 4
assert square(2) == 4
### BEGIN HIDDEN TESTS
assert square(1234567) == 1524155677489
### END HIDDEN TESTS
```

```{code-cell} ipython3
:key: test-hidden
:test: test-hidden
:points: 2
### BEGIN HIDDEN TESTS
assert square(-7) == 49
### END HIDDEN TESTS
```

+++ {"key": "why", "lang": "en", "manual": "why", "points": 3}

Model answer: because.

+++ {"key": "why", "lang": "zh", "manual": "why", "points": 3}

参考答案：因为。

+++ {"key": "analysis", "lang": "en", "only": "instructor"}

The solution explained.

+++ {"key": "analysis", "lang": "zh", "only": "instructor"}

答案解析。
'''
)


def write_lesson(root: Path, text: str = SMALL, name: str = "90_small") -> Path:
    """Lay the lesson into a course at `root`; the lesson's path."""
    (root / "notebooks").mkdir(parents=True, exist_ok=True)
    (root / "nbgrader_config.py").write_text("")
    path = root / "notebooks" / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    return path


def changed(old: str, new: str) -> str:
    """The small lesson with one edit; fails if there is nothing to edit."""
    assert old in SMALL, f"the small lesson has no {old!r}"
    return SMALL.replace(old, new, 1)
