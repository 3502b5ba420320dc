"""The exercises of lesson 01_memory_wall: bytes, accesses, intensity, bound, and out of memory."""

from __future__ import annotations

import math
import random
from typing import Any

from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.numbers import (
    Case,
    NumberExercise,
    Slip,
    as_number,
    same_number,
    slip_behind,
    write,
    wrong_number,
)
from flashcourse.checks.probe import Part, call, finding_of, judge
from flashcourse.checks.registry import exercise
from flashcourse.costs import HARDWARE
from flashcourse.words import Text

# ---------------------------------------------------------------- exercise 1: bytes of S and P


def _score_bytes(batch: int, heads: int, n: int, bytes_per_element: int) -> int:
    return 2 * batch * heads * n**2 * bytes_per_element


def _times(factor: Any) -> Any:
    """A slip that is off by a factor of the arguments."""
    return lambda **given: _score_bytes(**given) * factor(given)


_UNITS = (("MiB", 2**20), ("MB", 10**6), ("GiB", 2**30), ("GB", 10**9))
_BYTE_SLIPS = (
    Slip(
        "one_matrix",
        Text(
            "That is exactly half. S and P are 2 matrices, and each is kept.",
            "正好是一半。S 和 P 是 2 个矩阵，都要存。",
        ),
        _times(lambda a: 1 / 2),
    ),
    Slip(
        "heads_forgotten",
        Text("Each head has its own S and P.", "每个头都有自己的 S 和 P。"),
        _times(lambda a: 1 / a["heads"]),
    ),
    Slip(
        "batch_forgotten",
        Text(
            "Each sequence of the batch has its own S and P.", "批次里每条序列都有自己的 S 和 P。"
        ),
        _times(lambda a: 1 / a["batch"]),
    ),
    Slip(
        "batch_and_heads_forgotten",
        Text(
            "Each head of each sequence has its own S and P.", "每条序列的每个头都有自己的 S 和 P。"
        ),
        _times(lambda a: 1 / (a["batch"] * a["heads"])),
    ),
    Slip(
        "bits",
        Text("These are bits. A byte has 8.", "这是比特数。1 字节是 8 比特。"),
        _times(lambda a: 8),
    ),
    Slip(
        "bytes_divided_by_8",
        Text(
            "`bytes_per_element` is in bytes already: don't divide by 8.",
            "`bytes_per_element` 已经是字节，不要再除以 8。",
        ),
        _times(lambda a: 1 / 8),
    ),
    Slip(
        "elements",
        Text(
            "These are elements. Multiply by the bytes of each.",
            "这是元素个数，还要乘每个元素的字节数。",
        ),
        _times(lambda a: 1 / a["bytes_per_element"]),
    ),
    Slip(
        "linear_in_n",
        Text(
            "This grows with n, not with n². S has one entry for each pair of tokens.",
            "这是随 n 增长，不是随 n² 增长。S 对每一对 token 都有一个元素。",
        ),
        _times(lambda a: 1 / a["n"]),
    ),
    *(
        Slip(
            "other_unit",
            Text(f"This is in {unit}. Return bytes.", f"这是以 {unit} 计的。请返回字节数。"),
            _times(lambda a, size=size: 1 / size),
        )
        for unit, size in _UNITS
    ),
)
_BYTES = {
    "one": (5, Text("one sequence, one head", "1 条序列、1 个头")),
    "many": (5, Text("batch and heads", "批大小与头数")),
    "dtype": (5, Text("1, 2, 4 and 8 bytes per element", "每个元素 1、2、4、8 字节")),
}


def _byte_cases(seed: int) -> tuple[Case, ...]:
    draw = random.Random(100 + seed)
    names = ("batch", "heads", "n", "bytes_per_element")

    def case(part: str, *values: int) -> Case:
        return Case(part, dict(zip(names, values, strict=True)))

    return (
        case("one", 1, 1, 1024, 2),
        case("one", 1, 1, draw.randrange(100, 5000), 2),
        case("many", 3, 5, 4096, 2),
        case("many", draw.randrange(2, 9), draw.choice((12, 20, 96)), draw.randrange(100, 999), 2),
        *(case("dtype", 1, 1, draw.randrange(100, 999), size) for size in (4, 1, 8)),
    )


@exercise("memory.score_bytes", points=15, title=Text("Bytes of the scores", "分数占多少字节"))
def score_bytes(answer: Any, *, seed: int = 0) -> Marks:
    """score_bytes(batch, heads, n, bytes_per_element): bytes of S and P together."""
    hints = (
        Text("How many pairs of tokens are there?", "一共有多少对 token？"),
        Text("2 · batch · heads · n · n · bytes", "2 · batch · heads · n · n · 字节数"),
    )
    task = NumberExercise(
        "score_bytes", _BYTES, _byte_cases(seed), _score_bytes, _BYTE_SLIPS, hints, ("total",)
    )
    return judge("memory.score_bytes", task.judged(answer))


# ---------------------------------------------------------------- exercise 2: HBM accesses

# kernel → what it reads and writes, in (N² , Nd) terms: arXiv 2205.14135, Algorithm 0.
_KERNELS = {"scores": ((0, 2), (1, 0)), "softmax": ((1, 0), (1, 0)), "output": ((1, 1), (0, 1))}
_KERNEL_SAID = {
    "scores": Text("the scores kernel, S = QKᵀ", "算分数的 kernel，S = QKᵀ"),
    "softmax": Text("the softmax kernel, P = softmax(S)", "softmax 的 kernel，P = softmax(S)"),
    "output": Text("the output kernel, O = PV", "算输出的 kernel，O = PV"),
}
_SIDES = Text("reads", "读"), Text("writes", "写")


def _elements(kernel: str, side: int, n: int, d: int) -> int:
    square, tall = _KERNELS[kernel][side]
    return square * n * n + tall * n * d


def _access_slips(kernel: str, side: int) -> tuple[Slip, ...]:
    def term(square: float, tall: float) -> Any:
        return lambda n, d: square * n * n + tall * n * d

    square, tall = _KERNELS[kernel][side]
    other = _KERNELS[kernel][1 - side]
    slips = [
        Slip("bytes_not_elements", _BYTES_NOT, term(2 * square, 2 * tall)),
        Slip("flops_not_accesses", _FLOPS, lambda n, d: 2 * n * n * d),
        Slip("flops_not_accesses", _FLOPS, lambda n, d: n * n * d),
    ]
    if square != other[0] or tall != other[1]:
        slips.insert(0, Slip("reads_and_writes_swapped", _SWAPPED, term(*other)))
    if kernel == "scores" and side == 0:
        slips.append(Slip("one_input_only", _ONE_INPUT, term(0, 1)))
    if kernel == "output" and side == 0:
        slips.append(Slip("one_input_only", _P_AND_V, term(1, 0)))
        slips.append(Slip("one_input_only", _P_AND_V, term(0, 1)))
    if kernel == "softmax":
        slips.append(Slip("passes_counted", _PASSES, term(2, 0)))
        slips.append(Slip("passes_counted", _PASSES, term(3, 0)))
    return tuple(slips)


_BYTES_NOT = Text(
    "Twice too much. Are these bytes? Count elements.", "多了一倍。这是字节数吗？请数元素。"
)
_FLOPS = Text(
    "This counts arithmetic. Count what crosses between HBM and the chip.",
    "这是在数计算量。请数显存与芯片之间搬运的元素。",
)
_SWAPPED = Text("Reads and writes are swapped: (reads, writes).", "读和写的位置反了：（读，写）。")
_ONE_INPUT = Text("Both Q and K are read.", "Q 和 K 都要读。")
_P_AND_V = Text("Both P (N×N) and V (N×d) are read.", "P（N×N）和 V（N×d）都要读。")
_PASSES = Text(
    "Within one kernel count each element once: a row is kept on the chip for its passes.",
    "在一个 kernel 里每个元素只数一次：一行读进芯片后，几遍都在片上完成。",
)
_ACCESS_FORM = Finding(
    Text(
        "Return a dictionary with the keys 'scores', 'softmax', 'output', each a pair "
        "(reads, writes) of numbers.",
        "请返回一个字典，键是 'scores'、'softmax'、'output'，每个值是一对数（读，写）。",
    )
)


def _read_accesses(value: Any) -> dict[tuple[str, int], float] | None:
    """(kernel, side) → number; None for another form."""
    if not isinstance(value, dict) or set(value) != set(_KERNELS):
        return None
    numbers = {}
    for kernel, pair in value.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            return None
        for side in (0, 1):
            number = as_number(pair[side])
            if number is None:
                return None
            numbers[kernel, side] = number
    return numbers


def _kernel_finding(
    kernel: str, cases: list[Case], got: list[dict[tuple[str, int], float]]
) -> Finding | None:
    """The first thing that is wrong with one kernel's reads or writes."""
    for side in (0, 1):
        values = [numbers[kernel, side] for numbers in got]
        for case, value in zip(cases, values, strict=True):
            n, d = int(case.arguments["n"]), int(case.arguments["d"])
            want = _elements(kernel, side, n, d)
            if not same_number(value, want):
                slip = slip_behind(values, cases, _access_slips(kernel, side))
                name, tail = _SIDES[side], slip.text if slip else Text("", "")
                return Finding(
                    Text(
                        f"N = {n}, d = {d}: the `{kernel}` kernel {name.en} {write(want)} "
                        f"elements, not {write(value)}. {tail.en}".strip(),
                        f"N = {n}，d = {d}：`{kernel}` 这个 kernel {name.zh} {write(want)} 个元素，"
                        f"不是 {write(value)}。{tail.zh}",
                    ),
                    variable=kernel,
                    misconception=slip.misconception if slip else None,
                    hints=_ACCESS_HINTS,
                )
    return None


_ACCESS_HINTS = (
    Text(
        "Which tensors does this kernel need? Which one does it leave behind? How large are they?",
        "这个 kernel 需要哪些张量？留下哪一个？各有多大？",
    ),
    Text("All 6 numbers add up to 4N² + 4Nd.", "6 个数加起来是 4N² + 4Nd。"),
)


@exercise(
    "memory.accesses", points=20, title=Text("Traffic of standard attention", "标准注意力的访存量")
)
def accesses(answer: Any, *, seed: int = 0) -> Marks:
    """standard_accesses(n, d): kernel → (reads, writes) in elements, of one head."""
    draw = random.Random(200 + seed)
    shapes = ((1024, 64), (300, 128), (draw.randrange(50, 4000), draw.choice((32, 80, 256))))
    cases = [Case("", {"n": n, "d": d}) for n, d in shapes]
    points = {"scores": 7, "softmax": 6, "output": 7}
    got = []
    for case in cases:
        outcome = call(answer, *case.arguments.values(), skeleton=tuple(_KERNELS))
        failure, numbers = outcome.error, _read_accesses(outcome.value)
        if failure is not None or numbers is None:
            finding = finding_of(failure) if failure else _ACCESS_FORM
            status = failure.kind if failure else "wrong"
            parts = [Part(points[k], _KERNEL_SAID[k], finding, status) for k in _KERNELS]
            return judge("memory.accesses", parts)
        got.append(numbers)
    parts = [
        Part(points[kernel], _KERNEL_SAID[kernel], _kernel_finding(kernel, cases, got))
        for kernel in _KERNELS
    ]
    return judge("memory.accesses", parts)


# ---------------------------------------------------------------- exercise 3: intensity


def _intensity(n: int, d: int, bytes_per_element: int) -> float:
    return 4 * n * n * d / ((4 * n * n + 4 * n * d) * bytes_per_element)


def _intensity_with(flops: Any, moved: Any) -> Any:
    return lambda n, d, bytes_per_element: flops(n, d) / (moved(n, d) * bytes_per_element)


_FLOPS_OF = lambda n, d: 4 * n * n * d
_MOVED = lambda n, d: 4 * n * n + 4 * n * d
_INTENSITY_SLIPS = (
    Slip(
        "half_the_flops",
        Text(
            "That is exactly half. Are both products counted, and a multiply-add as 2?",
            "正好是一半。2 个矩阵乘都数了吗？一次乘加算 2 次运算了吗？",
        ),
        lambda **a: _intensity(**a) / 2,
    ),
    Slip(
        "half_the_flops",
        Text(
            "That is a quarter. There are 2 products, and a multiply-add counts as 2.",
            "正好是四分之一。有 2 个矩阵乘，一次乘加算 2 次运算。",
        ),
        lambda **a: _intensity(**a) / 4,
    ),
    Slip(
        "upside_down",
        Text("This is bytes per FLOP.", "这是每 FLOP 的字节数，反了。"),
        lambda **a: 1 / _intensity(**a),
    ),
    Slip(
        "elements_not_bytes",
        Text(
            "This is FLOPs per element. Turn elements into bytes.",
            "这是每个元素的 FLOP 数。请把元素换成字节。",
        ),
        lambda n, d, bytes_per_element: _intensity(n, d, 1),
    ),
    Slip(
        "bits",
        Text("You divided by bits.", "你除以的是比特数。"),
        lambda **a: _intensity(**a) / 8,
    ),
    Slip(
        "inputs_forgotten",
        Text("Q, K, V and O are moved too, 4Nd elements.", "Q、K、V、O 也要搬运，共 4Nd 个元素。"),
        _intensity_with(_FLOPS_OF, lambda n, d: 4 * n * n),
    ),
    Slip(
        "scores_forgotten",
        Text(
            "S and P are missing: standard attention writes and reads both.",
            "漏了 S 和 P：标准注意力要把它们都写出去再读回来。",
        ),
        _intensity_with(_FLOPS_OF, lambda n, d: 4 * n * d),
    ),
    Slip(
        "moved_once",
        Text(
            "S and P are each written and read: 4N², not 2N².",
            "S 和 P 都各写一次、读一次：是 4N²，不是 2N²。",
        ),
        _intensity_with(_FLOPS_OF, lambda n, d: 2 * n * n + 4 * n * d),
    ),
    Slip(
        "n_squared_only",
        Text(
            "The FLOPs lack the factor d: each score is a sum over d products.",
            "FLOPs 少了因子 d：每个分数是 d 个乘积之和。",
        ),
        _intensity_with(lambda n, d: 4 * n * n, _MOVED),
    ),
)
_INTENSITY = {
    "half": (12, Text("2 bytes per element", "每个元素 2 字节")),
    "other": (8, Text("1 and 4 bytes per element", "每个元素 1 和 4 字节")),
}


def _intensity_cases(seed: int) -> tuple[Case, ...]:
    draw = random.Random(300 + seed)
    rows = (
        ("half", 1024, 64, 2),
        ("half", 4096, 128, 2),
        ("half", draw.randrange(50, 9000), draw.choice((32, 96, 256)), 2),
        ("other", draw.randrange(50, 9000), 128, 4),
        ("other", draw.randrange(50, 9000), 64, 1),
    )
    return tuple(Case(p, {"n": n, "d": d, "bytes_per_element": b}) for p, n, d, b in rows)


@exercise("memory.intensity", points=20, title=Text("Arithmetic intensity", "算术强度"))
def intensity(answer: Any, *, seed: int = 0) -> Marks:
    """attention_intensity(n, d, bytes_per_element): FLOP per byte of standard attention."""
    hints = (
        Text("Divide the work by the traffic.", "用计算量除以搬运量。"),
        Text("4N²d / ((4N² + 4Nd) · bytes)", "4N²d / ((4N² + 4Nd) · 字节数)"),
    )
    task = NumberExercise(
        "attention_intensity",
        _INTENSITY,
        _intensity_cases(seed),
        _intensity,
        _INTENSITY_SLIPS,
        hints,
        ("flops", "moved", "intensity"),
    )
    return judge("memory.intensity", task.judged(answer))


# ---------------------------------------------------------------- exercise 4: the roofline

_ROOF_NAMES = ("flops", "bytes_moved", "peak_flops", "bandwidth")


def _seconds(flops: float, bytes_moved: float, peak_flops: float, bandwidth: float) -> float:
    return max(flops / peak_flops, bytes_moved / bandwidth)


def _is_memory_bound(flops: float, bytes_moved: float, peak_flops: float, bandwidth: float) -> bool:
    return bytes_moved / bandwidth > flops / peak_flops


_SECONDS_SLIPS = (
    Slip(
        "times_added",
        Text(
            "You added the 2 times. On the roofline both happen at once: the longer one counts.",
            "你把 2 个时间加起来了。屋顶线模型里两者同时进行：取较长的一个。",
        ),
        lambda flops, bytes_moved, peak_flops, bandwidth: (
            flops / peak_flops + bytes_moved / bandwidth
        ),
    ),
    Slip(
        "shorter_time",
        Text(
            "This is the shorter of the 2 times. The slower side decides.",
            "这是 2 个时间中较短的。慢的一方说了算。",
        ),
        lambda flops, bytes_moved, peak_flops, bandwidth: min(
            flops / peak_flops, bytes_moved / bandwidth
        ),
    ),
    Slip(
        "compute_only",
        Text("Moving the bytes takes time too.", "搬运字节也要时间。"),
        lambda flops, bytes_moved, peak_flops, bandwidth: flops / peak_flops,
    ),
    Slip(
        "memory_only",
        Text("The arithmetic takes time too.", "计算也要时间。"),
        lambda flops, bytes_moved, peak_flops, bandwidth: bytes_moved / bandwidth,
    ),
    Slip(
        "milliseconds",
        Text("These are milliseconds. Return seconds.", "这是毫秒。请返回秒。"),
        lambda **a: 1e3 * _seconds(**a),
    ),
    Slip(
        "upside_down",
        Text("This is 1/seconds.", "这是秒的倒数。"),
        lambda **a: 1 / _seconds(**a),
    ),
)


def _roof_cases(seed: int) -> list[Case]:
    """Softmax, standard attention and square products on real GPUs, and two made-up machines."""
    draw = random.Random(400 + seed)
    gpus = [HARDWARE[name] for name in ("T4", "A100-40GB", "H100")]
    n = 2 ** draw.randrange(10, 14)
    work = (
        (5 * n * n, 2 * n * n * 2),
        (4 * n * n * 128, 2 * (4 * n * n + 4 * n * 128)),
        (2 * n**3, 3 * n * n * 2),
    )
    rows = [(*w, gpu.tensor_flops, gpu.hbm_bytes_per_s) for gpu in gpus for w in work]
    rows += [(600, 100, 10, 2), (300, 100, 10, 2)]
    return [Case("", dict(zip(_ROOF_NAMES, row, strict=True))) for row in rows]


def _bound_finding(cases: list[Case], bounds: list[str]) -> Finding | None:
    """The first case with the wrong word. 'memory-bound' is as good as 'memory'."""
    right = ["memory" if _is_memory_bound(**case.arguments) else "compute" for case in cases]
    for case, bound, want in zip(cases, bounds, right, strict=True):
        if bound != want:
            reversed_ = all(
                b in ("memory", "compute") and b != w for b, w in zip(bounds, right, strict=True)
            )
            a = case.arguments
            compute, memory = a["flops"] / a["peak_flops"], a["bytes_moved"] / a["bandwidth"]
            tail = _REVERSED if reversed_ else Text("", "")
            return Finding(
                Text(
                    f"The arithmetic takes {compute:.3g} s and the traffic {memory:.3g} s, so the "
                    f"bound is '{want}', not '{bound}'. {tail.en}".strip(),
                    f"计算要 {compute:.3g} 秒，搬运要 {memory:.3g} 秒，所以瓶颈是 '{want}'，"
                    f"不是 '{bound}'。{tail.zh}",
                ),
                misconception="bound_reversed" if reversed_ else None,
                hints=(
                    Text(
                        "Which of the 2 times is longer? That side is the bound.",
                        "2 个时间里哪个更长？更长的那一方就是瓶颈。",
                    ),
                ),
            )
    return None


_REVERSED = Text("You have them the wrong way round in every case.", "每种情况你都正好说反了。")


def _seconds_finding(cases: list[Case], seconds: list[float]) -> Finding | None:
    for case, value in zip(cases, seconds, strict=True):
        want = _seconds(**case.arguments)
        if not same_number(value, want):
            slip = slip_behind(seconds, cases, _SECONDS_SLIPS)
            hints = (
                Text("max(flops / peak, bytes / bandwidth)", "max(flops / 峰值, 字节 / 带宽)"),
            )
            return wrong_number("roofline", case, value, want, slip, hints)
    return None


_ROOF_SAID = (
    (10, Text("which side is the bound", "瓶颈在哪一边")),
    (10, Text("the shortest possible time", "最短的可能时间")),
)
_ROOF_FORM = Finding(
    Text(
        "Return 2 things: the word 'memory' or 'compute', and a number of seconds.",
        "请返回 2 样东西：'memory' 或 'compute'，以及秒数。",
    )
)


@exercise("memory.bound", points=20, title=Text("Which side is the bound?", "瓶颈在哪一边？"))
def bound(answer: Any, *, seed: int = 0) -> Marks:
    """roofline(flops, bytes_moved, peak_flops, bandwidth) → ('memory' or 'compute', seconds)."""
    cases, bounds, seconds = _roof_cases(seed), [], []
    for case in cases:
        outcome = call(
            answer, *case.arguments.values(), skeleton=("compute", "memory", "bound", "seconds")
        )
        value, failure = outcome.value, outcome.error
        pair = isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str)
        number = as_number(value[1]) if pair else None
        if failure is not None or number is None:
            finding = finding_of(failure) if failure else _ROOF_FORM
            status = failure.kind if failure else "wrong"
            parts = [Part(points, said, finding, status) for points, said in _ROOF_SAID]
            return judge("memory.bound", parts)
        bounds.append(value[0].strip().lower().removesuffix("-bound").removesuffix(" bound"))
        seconds.append(number)
    found = (_bound_finding(cases, bounds), _seconds_finding(cases, seconds))
    parts = [Part(p, said, f) for (p, said), f in zip(_ROOF_SAID, found, strict=True)]
    return judge("memory.bound", parts)


# ---------------------------------------------------------------- exercise 5: out of memory


def _first_too_long(
    memory_bytes: int, batch: int, heads: int, d: int, bytes_per_element: int, tensors: int = 4
) -> int:
    """The smallest N with 2·BHN²·b + 4·BHNd·b > memory, by the root of the quadratic."""
    square = 2 * batch * heads * bytes_per_element
    linear = tensors * batch * heads * d * bytes_per_element
    root = math.isqrt(linear**2 + 4 * square * memory_bytes)
    return (root - linear) // (2 * square) + 1


def _with(change: Any, **fixed: int) -> Any:
    return lambda **given: _first_too_long(**{**given, **change(given)}, **fixed)


_LONG_SLIPS = (
    Slip(
        "last_that_fits",
        Text(
            "This is the last N that fits. The first that doesn't is 1 more.",
            "这是最后一个放得下的 N。第一个放不下的要再加 1。",
        ),
        lambda **a: _first_too_long(**a) - 1,
    ),
    Slip(
        "heads_forgotten",
        Text("Every head needs its own tensors.", "每个头都要有自己的张量。"),
        _with(lambda a: {"heads": 1}),
    ),
    Slip(
        "batch_forgotten",
        Text(
            "Every sequence of the batch needs its own tensors.", "批次里每条序列都要有自己的张量。"
        ),
        _with(lambda a: {"batch": 1}),
    ),
    Slip(
        "inputs_forgotten",
        Text("Q, K, V and O take memory as well.", "Q、K、V、O 也占显存。"),
        _with(lambda a: {}, tensors=0),
    ),
    Slip(
        "output_forgotten",
        Text("The output O takes memory as well.", "输出 O 也占显存。"),
        _with(lambda a: {}, tensors=3),
    ),
    Slip(
        "one_matrix",
        Text("S and P are 2 matrices.", "S 和 P 是 2 个矩阵。"),
        # One N×N matrix instead of 2, but all of Q, K, V, O: as if there were half of everything
        # and twice the tall tensors.
        lambda **a: _first_too_long(**{**a, "memory_bytes": 2 * a["memory_bytes"]}, tensors=8),
    ),
    Slip(
        "bits",
        Text("You counted bits. Memory is in bytes.", "你数的是比特，而显存以字节计。"),
        _with(lambda a: {"bytes_per_element": 8 * a["bytes_per_element"]}),
    ),
    Slip(
        "elements",
        Text("You counted elements. Memory is in bytes.", "你数的是元素，而显存以字节计。"),
        _with(lambda a: {"bytes_per_element": 1}),
    ),
)
_LONG = {
    "one": (8, Text("one sequence, one head", "1 条序列、1 个头")),
    "many": (9, Text("batch, heads and other dtypes", "批大小、头数与其他 dtype")),
    "exact": (8, Text("exactly the first N that doesn't fit", "恰好是第一个放不下的 N")),
}
_LONG_NAMES = ("memory_bytes", "batch", "heads", "d", "bytes_per_element")


def _long_cases(seed: int) -> tuple[Case, ...]:
    draw = random.Random(500 + seed)

    def case(part: str, *values: int) -> Case:
        return Case(part, dict(zip(_LONG_NAMES, values, strict=True)))

    t4, a100 = (int(HARDWARE[name].hbm_bytes) for name in ("T4", "A100-40GB"))
    fits_17 = 2 * 3 * 17 * 17 * 2 + 4 * 3 * 17 * 8 * 2  # 17 tokens fill this to the last byte
    return (
        case("one", t4, 1, 1, 64, 2),
        case("one", draw.randrange(10**6, 10**8), 1, 1, 128, 2),
        case("many", a100, 16, 8, 64, 2),
        case("many", a100, 5, 32, 128, 4),
        case("many", draw.randrange(10**7, 10**9), 3, draw.randrange(4, 20), 96, 1),
        case("exact", fits_17, 1, 3, 8, 2),
        case("exact", fits_17 - 1, 1, 3, 8, 2),
        case("exact", draw.randrange(10**5, 10**6), 1, 2, 16, 2),
    )


@exercise(
    "memory.out_of_memory", points=25, title=Text("From which length on?", "从多长开始放不下？")
)
def out_of_memory(answer: Any, *, seed: int = 0) -> Marks:
    """first_n_too_long(memory_bytes, batch, heads, d, bytes_per_element): the smallest such N."""
    hints = (
        Text("Which tensors exist at the same time?", "哪些张量同时存在？"),
        Text(
            "The smallest N with batch · heads · bytes · (2N² + 4Nd) > memory. A loop is fine.",
            "满足 batch · heads · 字节数 · (2N² + 4Nd) > 显存的最小 N。用循环也可以。",
        ),
    )
    task = NumberExercise(
        "first_n_too_long", _LONG, _long_cases(seed), _first_too_long, _LONG_SLIPS, hints, ("n",)
    )

    def same(part: str, value: float, want: float) -> bool:
        return value == want if part == "exact" else abs(value - want) <= 1

    return judge("memory.out_of_memory", task.judged(answer, same))
