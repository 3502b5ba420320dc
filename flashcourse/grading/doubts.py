"""What makes a human look: code in a submission that could make its record say what is not so.

`record` runs inside the student's process, so what it reports can be forged. The marks for results
rest on numbers that can't be; these checks read the syntax tree of the student's cells and list
what an honest answer has no use for. A doubt costs no points.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from flashcourse.grading.assemble import Plan, Planned
from flashcourse.grading.names import parse
from flashcourse.grading.outcome import in_both
from flashcourse.words import Text

# Why a name is doubted: what it does.
_MEMORY = Text("reaches into memory", "直接读写内存")
_IMPORTS = Text("imports by other ways", "绕开普通的 import 导入模块")
_FINISHED = Text("calls PyTorch's finished attention", "调用了 PyTorch 现成的注意力")
_SOFTMAX = Text("calls softmax on whole rows", "对整行调用 softmax")
_RECORDER = Text("changes what the recorder sees", "改变记录器看到的内容")
_FRAMES = Text("looks into other frames", "查看其他栈帧")
_RUNS_TEXT = Text("runs text as code", "把文本当作代码执行")
_NAMES = Text("reaches names by text", "通过文本访问变量")
_REACHES = Text("reaches things by name", "通过名字访问对象")
_TOOLS = Text("uses the course's own tools inside an answer", "在答案里使用课程自带的工具")
_CHANGES = Text("changes a module that others use", "改动了公用的模块")
_PRIVATE = Text("reaches what is not meant for answers", "访问了答案不该接触的内容")
_OWN_CELL = Text("own cell", "自己加的单元格")

# Modules that look into or change the running process.
_MODULES = {
    "ctypes": _MEMORY,
    "gc": Text("looks for objects of the grader's", "寻找评分程序的对象"),
    "inspect": Text("reads other code's frames or source", "读取其他代码的栈帧或源码"),
    "sys": Text("can change modules, tracing or output", "可以改动模块、跟踪函数或输出"),
    "os": Text("reaches the operating system", "接触操作系统"),
    "subprocess": Text("starts other programs", "启动其他程序"),
    "multiprocessing": Text("starts other processes", "启动其他进程"),
    "threading": Text("can change things later, beside the tests", "可以在测试进行时另行改动"),
    "signal": Text("can outlive a time limit", "可以绕过时间限制"),
    "socket": Text("opens connections", "建立网络连接"),
    "importlib": _IMPORTS,
    "builtins": Text("can change Python itself", "可以改动 Python 本身"),
    "pickle": Text("runs code out of data", "从数据中执行代码"),
    "atexit": Text("runs code at the end", "在进程结束时执行代码"),
    "mmap": _MEMORY,
    "faulthandler": Text("writes outside its output", "在正常输出之外写入"),
    "unittest": Text("can replace parts of a module", "可以替换模块的一部分"),
    "types": Text("makes code objects", "构造代码对象"),
}
_CALLS = {
    "scaled_dot_product_attention": _FINISHED,
    "softmax": _SOFTMAX,
    "log_softmax": _SOFTMAX,
    "MultiheadAttention": _FINISHED,
    "exact_attention": Text("calls the course's own exact attention", "调用了课程自带的精确注意力"),
    "settrace": _RECORDER,
    "setprofile": _RECORDER,
    "_getframe": _FRAMES,
    "exec": _RUNS_TEXT,
    "eval": _RUNS_TEXT,
    "__import__": _IMPORTS,
    "globals": _NAMES,
    "setattr": Text("changes things by name", "通过名字改动对象"),
    "getattr": _REACHES,
    "vars": _NAMES,
    "locals": _NAMES,
    "compile": _RUNS_TEXT,
    "open": Text("reads or writes files", "读写文件"),
    "modules": Text("reaches other modules", "访问其他模块"),
    "f_back": _FRAMES,
    "tb_frame": _FRAMES,
    "__traceback__": _FRAMES,
    "__dict__": _REACHES,
    "__builtins__": Text("reaches Python itself", "访问 Python 内部"),
    "__subclasses__": Text("looks for classes of the grader's", "寻找评分程序的类"),
    "get_ipython": Text("reaches the shell that runs the cells", "访问运行单元格的 shell"),
    "as_subclass": Text("returns a tensor that is not what it seems", "返回的张量名不副实"),
    "__torch_dispatch__": _RECORDER,
    "__torch_function__": _RECORDER,
}
_OURS = ("torch", "flashcourse", "numpy", "IPython", "math")


def doubts_of(plan: Plan) -> tuple[Text, ...]:
    """Reasons to look at a submission, each with the cell, the line and the code's effect."""
    found: dict[Text, None] = {}
    for cell in plan.cells:
        if cell.role == "own" or (cell.role == "answer" and cell.changed):
            for reason in _of_cell(cell):
                found[reason] = None
    return tuple(found)[:50]


def _of_cell(cell: Planned) -> Iterator[Text]:
    name = in_both(cell.course.grade_id) if cell.course is not None else _OWN_CELL
    tree = parse(cell.source)
    if tree is None:
        return
    given = identifiers(cell.course.shown) if cell.course is not None else frozenset()
    for node in ast.walk(tree):
        for line, what, why in _of_node(node):
            if what not in given:
                yield Text(
                    f"{name.en}, line {line}: `{what}` {why.en}",
                    f"{name.zh}，第 {line} 行：`{what}` {why.zh}",
                )


def _of_node(node: ast.AST) -> Iterator[tuple[int, str, Text]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _of_module(node.lineno, alias.name)
    elif isinstance(node, ast.ImportFrom):
        yield from _of_module(node.lineno, node.module or "")
        for alias in node.names:
            if alias.name in _CALLS:
                yield node.lineno, alias.name, _CALLS[alias.name]
    elif isinstance(node, (ast.Attribute, ast.Name)):
        yield from _of_name(node)
    elif isinstance(node, ast.FunctionDef) and node.name in _CALLS:
        yield node.lineno, node.name, _CALLS[node.name]


def _of_module(line: int, module: str) -> Iterator[tuple[int, str, Text]]:
    top = module.partition(".")[0]
    if top in _MODULES:
        yield line, module, _MODULES[top]
    if module.startswith("flashcourse.") and top != module:
        yield line, module, _TOOLS


def _of_name(node: ast.Attribute | ast.Name) -> Iterator[tuple[int, str, Text]]:
    name = node.attr if isinstance(node, ast.Attribute) else node.id
    stored = isinstance(node.ctx, (ast.Store, ast.Del))
    if isinstance(node, ast.Attribute) and stored:
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in _OURS:
            yield node.lineno, ast.unparse(node), _CHANGES
            return
    if name in _CALLS and not stored:
        yield node.lineno, name, _CALLS[name]
    elif name.startswith("__flashcourse") or name in ("__code__", "__globals__", "f_locals"):
        yield node.lineno, name, _PRIVATE


@lru_cache(maxsize=256)
def identifiers(source: str) -> frozenset[str]:
    """Names that a released cell itself uses: nobody is doubted for what they were given."""
    tree = parse(source)
    if tree is None:
        return frozenset()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return frozenset(names)
