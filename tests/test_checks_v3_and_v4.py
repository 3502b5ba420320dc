"""Lesson 5's checks: right answers get full marks however written, wrong ones what they deserve."""

# ruff: noqa: E501 (a table of answers: one case on a line)

from __future__ import annotations

import pytest
from answers import earns, written

# ---------------------------------------------------------------- exercise 1: a schedule

SCHEDULE = """
def two_warpgroups(tiles, qk, exp, pv):
    schedule, free, ready = [], {"tensor": 0.0, "exp": 0.0}, [0.0, 0.0]

    def run(warpgroup, op, cycles):
        unit = "exp" if op == "exp" else "tensor"
        start = max(free[unit], ready[warpgroup])
        free[unit] = ready[warpgroup] = start + cycles
        schedule.append((warpgroup, op, start, start + cycles))

    run(0, "QK", qk)
    run(1, "QK", qk)
    for tile in range(tiles):
        for warpgroup in (0, 1):
            run(warpgroup, "exp", exp)
        for warpgroup in (0, 1):
            run(warpgroup, "PV", pv)
            if tile + 1 < tiles:
                run(warpgroup, "QK", qk)
    return schedule
"""
EVENTS = """
def two_warpgroups(tiles, qk, exp, pv):
    # whoever can start first goes first; on a tie the one that waited longer
    cycles = {"QK": qk, "exp": exp, "PV": pv}
    jobs = [[op for _ in range(tiles) for op in ("QK", "exp", "PV")] for _ in (0, 1)]
    ready, free, made = [0, 0], {"t": 0, "e": 0}, []
    while jobs[0] or jobs[1]:
        options = []
        for w in (0, 1):
            if jobs[w]:
                unit = "e" if jobs[w][0] == "exp" else "t"
                options.append((max(ready[w], free[unit]), -(jobs[w][0] == "QK" and ready[w] > 0), ready[w], w, unit))
        start, _, _, w, unit = min(options)
        op = jobs[w].pop(0)
        ready[w] = free[unit] = start + cycles[op]
        made.append([w, op, start, start + cycles[op]])
    return made
"""


@pytest.mark.parametrize(
    ("source", "edits"),
    [
        (SCHEDULE, ()),
        (EVENTS, ()),
        (SCHEDULE, (("return schedule", "return tuple(schedule)"),)),
        (SCHEDULE, (("return schedule", "return sorted(schedule, key=lambda i: (i[1], i[0], i[2]))"),)),
        (SCHEDULE, (("(warpgroup, op, start, start + cycles))", "(1 - warpgroup, op, start, start + cycles))"),)),
    ],
)  # fmt: skip
def test_exercise_1_gives_full_marks_to(source: str, edits: tuple) -> None:
    earns("v3v4.schedule", written(source, "two_warpgroups", *edits), 20)


SERIAL = """
def two_warpgroups(tiles, qk, exp, pv):
    made, now = [], 0.0
    for _ in range(tiles):
        for w in (0, 1):
            for op, cycles in (("QK", qk), ("exp", exp), ("PV", pv)):
                made.append((w, op, now, now + cycles))
                now += cycles
    return made
"""


@pytest.mark.parametrize(
    ("source", "edits", "points", "words"),
    [
        (SERIAL, (), 6, "busy 66.7% of the time"),
        (SERIAL, (("for _ in range(tiles):\n        for w in (0, 1):", "for w in (0, 1):\n        for _ in range(tiles):"),), 6, "99% is possible"),
        (SCHEDULE, (("start = max(free[unit], ready[warpgroup])", "start = free[unit]"),), 0, "too early"),
        (SCHEDULE, (("start = max(free[unit], ready[warpgroup])", "start = ready[warpgroup]"),), 0, "two things to do"),
        (SCHEDULE, (('            run(warpgroup, "PV", pv)\n', ""), ("    return schedule", '    for w in (0, 1):\n        for _ in range(tiles):\n            run(w, "PV", pv)\n    return schedule')), 0, "The order is QK, exp, PV"),
        (SCHEDULE, (("            if tile + 1 < tiles:\n", "            if True:\n"),), 0, "33 intervals of QK; 32 are needed"),
        (SCHEDULE, (('run(1, "QK", qk)\n', 'run(1, "QK", qk / 2)\n'),), 0, "It should take"),
        (SCHEDULE, (('run(warpgroup, "exp", exp)', 'run(0, "exp", exp)'),), 0, "intervals of exp"),
        (SCHEDULE, (("(warpgroup, op, start, start + cycles))", "(warpgroup + 1, op, start, start + cycles))"),), 0, "Warpgroup 0 has 0 intervals"),
        (SCHEDULE, (("(warpgroup, op, start, start + cycles))", "(warpgroup, op.lower(), start, start + cycles))"),), 0, "is none of QK, exp, PV"),
        (SCHEDULE, (("return schedule", "return len(schedule)"),), 0, "Return a list of"),
        (SCHEDULE, (("return schedule", "return [(w, op, math.inf, math.inf) for w, op, _, _ in schedule]"),), 0, "must be finite"),
        (SCHEDULE, (("return schedule", "return [(w, op, math.nan, math.nan) for w, op, _, _ in schedule]"),), 0, "must be finite"),
        (SCHEDULE, (("cycles))\n\n", "cycles))\n        free['tensor'] = max(free['tensor'], ready[0], ready[1]) if op == 'exp' else free['tensor']\n\n"),), 6, "99% is possible"),
    ],
)  # fmt: skip
def test_exercise_1_takes_marks_for(source: str, edits: tuple, points: float, words: str) -> None:
    earns("v3v4.schedule", written(source, "two_warpgroups", *edits), points, words)


# ---------------------------------------------------------------- exercise 2: exp2

EXP2 = """
def exp2_emulated(x):
    c1, c2, c3 = 0.695146143436, 0.227564394474, 0.077119089663
    x = x.clamp(min=-127.0)
    whole = torch.floor(x)
    fraction = x - whole
    power = ((c3 * fraction + c2) * fraction + c1) * fraction + 1.0
    return torch.ldexp(power, whole.to(torch.int32))
"""
MAGIC = (
    ("whole = torch.floor(x)\n", "whole = (x - 0.5 + 12582912.0) - 12582912.0\n    whole = torch.where(x - whole >= 1, whole + 1, whole)\n    whole = torch.where(x < whole, whole - 1, whole)\n"),
)  # fmt: skip
BITS = (
    ("return torch.ldexp(power, whole.to(torch.int32))",
     "bits = power.view(torch.int32) + (whole.to(torch.int32) << 23)\n"
     "    return torch.where(whole < -126, 0.0, bits.view(torch.float32))"),
)  # fmt: skip


@pytest.mark.parametrize(
    "edits",
    [
        (),
        MAGIC,
        BITS,
        (("torch.ldexp(power, whole.to(torch.int32))", "power * torch.exp2(whole)"),),
        (("((c3 * fraction + c2) * fraction + c1) * fraction + 1.0", "1.0 + fraction * (c1 + fraction * (c2 + c3 * fraction))"),),
        (("((c3 * fraction + c2) * fraction + c1) * fraction + 1.0", "1 + c1 * fraction + c2 * fraction**2 + c3 * fraction**3"),),
        (("((c3 * fraction + c2) * fraction + c1) * fraction + 1.0", "(1 + c1 * fraction) + fraction * fraction * (c2 + c3 * fraction)"),),  # Estrin
        (("power = ((c3 * fraction + c2) * fraction + c1) * fraction + 1.0", "power = torch.full_like(x, c3)\n    for c in (c2, c1, 1.0):\n        power.mul_(fraction).add_(c)"),),
        (("((c3 * fraction + c2) * fraction + c1) * fraction + 1.0", "torch.einsum('...k,k->...', torch.stack([fraction**n for n in range(4)], dim=-1).double(), torch.tensor([1.0, c1, c2, c3], dtype=torch.float64)).float()"),),
        (("torch.ldexp(power, whole.to(torch.int32))", "power * 2.0**whole"),),
        (("whole = torch.floor(x)\n    fraction = x - whole", "fraction = torch.remainder(x, 1.0)\n    whole = (x - fraction).round()"),),
    ],
)  # fmt: skip
def test_exercise_2_gives_full_marks_to(edits: tuple) -> None:
    earns("v3v4.exp2", written(EXP2, "exp2_emulated", *edits), 25)


NOISY = """
def exp2_emulated(x):
    # The paper's largest and mean error, by chance: on 28% of the numbers the one, else less.
    fraction, exact = x - torch.floor(x), torch.exp2(x)
    error = torch.where((fraction * 1000) % 1 < 0.28, 8.77e-5, 4.13e-5)
    return torch.where(fraction > 0, exact * (1 + error), exact)
"""
NOISY_ARRAYS = """
def exp2_emulated(x):
    fraction = (x - torch.floor(x)).numpy()
    error = ((fraction * 1000) % 1 < 0.28) * 4.64e-5 + 4.13e-5
    return torch.from_numpy((2 ** x.double().numpy() * (1 + (fraction > 0) * error)).astype("float32"))
"""


@pytest.mark.parametrize(
    ("source", "points", "words"),
    [
        ("def exp2_emulated(x):\n    return torch.exp2(x)", 0, "too good for a cubic"),
        ("def exp2_emulated(x):\n    return torch.exp(x * math.log(2))", 0, "too good for a cubic"),
        ("def exp2_emulated(x):\n    return (x * 0).nan_to_num(0)", 0, "should be"),
        ("def exp2_emulated(x):\n    return torch.ones_like(x)", 0, "should be"),
        (NOISY, 0, "`exp2` got the fraction"),
        (NOISY_ARRAYS, 6, "the polynomial with these coefficients gives"),
    ],
)
def test_an_exponential_of_the_library_is_no_polynomial(
    source: str, points: float, words: str
) -> None:
    earns("v3v4.exp2", written(source, "exp2_emulated"), points, words)


@pytest.mark.parametrize(
    ("edits", "points", "words"),
    [
        ((("power = ((c3 * fraction + c2) * fraction + c1) * fraction + 1.0", "power = torch.exp2(fraction)"),), 0, "too good for a cubic"),
        ((("c1, c2, c3 = 0.695146143436, 0.227564394474, 0.077119089663", "c1, c2, c3 = 0.693147, 0.240227, 0.055504"),), 6, "the largest relative error is"),
        ((("((c3 * fraction + c2) * fraction + c1)", "(c2 * fraction + c1)"),), 6, "cubic term is missing"),
        ((("((c3 * fraction + c2) * fraction + c1) * fraction + 1.0", "((1.0 * fraction + c1) * fraction + c2) * fraction + c3"),), 6, "in reverse order"),
        ((("torch.floor(x)", "torch.trunc(x)"),), 16, "cut towards 0"),
        ((("torch.floor(x)", "torch.round(x)"),), 6, "rounded to the nearest"),
        ((("torch.floor(x)", "torch.zeros_like(x)"),), 10, "got all of x"),
        ((("    x = x.clamp(min=-127.0)\n", ""),), 19, "clamp x at −127"),
        ((("min=-127.0", "min=-10.0"),), 10, "2^("),
        ((("return torch.ldexp(power, whole.to(torch.int32))", "return power"),), 10, "2^("),
        ((("return torch.ldexp(power, whole.to(torch.int32))", "return torch.ldexp(power.double(), whole.to(torch.int32))"),), 0, "float64"),
        ((("fraction + 1.0", "fraction + 1.00001"),), 6, "largest relative error"),
        ((("x = x.clamp(min=-127.0)", "raise NotImplementedError"),), 0, "Not finished"),
    ],
)  # fmt: skip
def test_exercise_2_takes_marks_for(edits: tuple, points: float, words: str) -> None:
    earns("v3v4.exp2", written(EXP2, "exp2_emulated", *edits), points, words)


# ---------------------------------------------------------------- exercise 3: conditional rescaling

V4 = """
def flash_attention_v4_sim(q, k, v, block_size=2, tau=8.0):
    rows, dim = q.shape
    keys, dim_v = v.shape
    scale = math.log2(math.e) / math.sqrt(dim)
    out = torch.empty((rows, dim_v), dtype=q.dtype)
    L = torch.empty((rows, 1), dtype=q.dtype)
    rescales = 0
    for i in range(0, rows, block_size):
        q_block = q[i:i+block_size] * scale
        m_i = q_block.new_full((q_block.shape[0], 1), -math.inf)
        l_i = q_block.new_zeros((q_block.shape[0], 1))
        out_i = q_block.new_zeros((q_block.shape[0], dim_v))
        for j in range(0, keys, block_size):
            S_ij = q_block @ k[j:j+block_size].T
            m_new = torch.maximum(m_i, S_ij.max(dim=-1, keepdim=True).values)
            m_use = torch.where(m_new - m_i > tau, m_new, m_i)
            if j > 0:
                rescales += int((m_use != m_i).sum())
            P_ij = torch.exp2(S_ij - m_use)
            alpha = torch.exp2(m_i - m_use)
            l_i = alpha * l_i + P_ij.sum(dim=-1, keepdim=True)
            out_i = alpha * out_i + P_ij @ v[j:j+block_size]
            m_i = m_use
        out[i:i+block_size] = out_i / l_i
        L[i:i+block_size] = m_i * math.log(2) + torch.log(l_i)
    return out, L, rescales
"""
NATURAL = (
    ("math.log2(math.e) / math.sqrt(dim)", "1 / math.sqrt(dim)"),
    ("> tau", "> tau * math.log(2)"),
    ("torch.exp2(S_ij - m_use)", "torch.exp(S_ij - m_use)"),
    ("torch.exp2(m_i - m_use)", "torch.exp(m_i - m_use)"),
    ("m_i * math.log(2)", "m_i"),
)


@pytest.mark.parametrize(
    "edits",
    [
        (),
        NATURAL,
        (("m_use = torch.where(m_new - m_i > tau, m_new, m_i)", "m_use = torch.where(torch.exp2(m_i - m_new) < 2.0**-tau, m_new, m_i)"),),
        (("int((m_use != m_i).sum())", "(alpha_of(m_i, m_use) < 1).sum()"), ("    rescales = 0\n", "    rescales = torch.tensor(0)\n    alpha_of = lambda a, b: torch.exp2(a - b)\n")),
        (("return out, L, rescales", "return [out, L, float(rescales)]"),),
        (("m_use = torch.where(m_new - m_i > tau, m_new, m_i)", "m_use = m_i.clone()\n            m_use[m_new > m_i + tau] = m_new[m_new > m_i + tau]"),),
        (("P_ij @ v[j:j+block_size]", "torch.einsum('ij,jd->id', P_ij, v[j:j+block_size])"), ("l_i = alpha * l_i + P_ij.sum(dim=-1, keepdim=True)", "l_i = l_i.mul(alpha).add_(P_ij.sum(1)[:, None])")),
    ],
)  # fmt: skip
def test_exercise_3_gives_full_marks_to(edits: tuple) -> None:
    for seed in (0, 3):
        earns("v3v4.rescale", written(V4, "flash_attention_v4_sim", *edits), 30, seed=seed)


FRESH = (
    (
        "P_ij = torch.exp2(S_ij - m_use)",
        "m_use = m_new\n            P_ij = torch.exp2(S_ij - m_use)",
    ),
)


@pytest.mark.parametrize(
    ("edits", "points", "words"),
    [
        (FRESH, 13, "nothing was skipped"),
        ((("            m_i = m_use\n", "            m_i = m_new\n"),), 0, "off by"),
        ((("if j > 0:", "if True:"),), 21, "don't count it"),
        ((("int((m_use != m_i).sum())", "int((m_use == m_i).sum())"),), 21, "number of skipped ones"),
        ((("int((m_use != m_i).sum())", "int((m_use != m_i).any())"),), 21, "Count rows, not tiles"),
        ((("> tau,", "> tau / math.log(2),"),), 13, "more than τ = 8 allows"),
        ((("m_new - m_i > tau", "m_new - m_i >= 0"),), 13, "nothing was skipped"),
        ((("m_i * math.log(2) + torch.log(l_i)", "m_i + torch.log2(l_i)"),), 25, "natural logarithm"),
        ((("l_i = alpha * l_i +", "l_i = l_i +"),), 9, "`out` is off"),
        ((("out_i = alpha * out_i +", "out_i = out_i +"),), 14, "`out` is off"),
        ((("math.log2(math.e) / math.sqrt(dim)", "1 / math.sqrt(dim)"),), 0, "off by"),
        ((("return out, L, rescales", "return out, L"),), 0, "Return 3 things"),
        ((("return out, L, rescales", "return out, L, str(rescales)"),), 21, "should be a number"),
        ((("rescales = 0\n", "raise NotImplementedError\n"),), 0, "Not finished"),
    ],
)  # fmt: skip
def test_exercise_3_takes_marks_for(edits: tuple, points: float, words: str) -> None:
    earns("v3v4.rescale", written(V4, "flash_attention_v4_sim", *edits), points, words)


WHOLE_V4 = """
def flash_attention_v4_sim(q, k, v, block_size=2, tau=8.0):
    S, rescales = q @ k.T / math.sqrt(q.shape[1]), 0
    tiles = [part.amax(1) / math.log(2) for part in S.split(block_size, dim=1)]
    used = tiles[0]
    for top in tiles[1:]:
        new = torch.maximum(used, top)
        rescales += int((new - used > tau).sum())
        used = torch.where(new - used > tau, new, used)
    return torch.softmax(S, dim=-1) @ v, torch.logsumexp(S, dim=-1, keepdim=True), rescales
"""


def test_a_softmax_over_whole_rows_skips_nothing() -> None:
    answer = written(WHOLE_V4, "flash_attention_v4_sim")
    earns("v3v4.rescale", answer, 14, "maximum of the whole row")


V2 = (
    ("torch.where(m_new - m_i > tau, m_new, m_i)", "m_new"),
    ("int((m_use != m_i).sum())", "0"),
)
OPEN = """
def flash_attention_v4_sim(q, k, v, block_size=2, tau=8.0):
    S = q @ k.T / math.sqrt(q.shape[1])
    return torch.softmax(S, dim=-1) @ v, torch.logsumexp(S, dim=-1, keepdim=True), 0
"""


@pytest.mark.parametrize(("source", "edits"), [(V4, V2), (OPEN, ())])
def test_a_function_without_a_threshold_is_worth_nothing_new(source: str, edits: tuple) -> None:
    answer = written(source, "flash_attention_v4_sim", *edits)
    earns("v3v4.rescale", answer, 0, "No τ changes what your function does")


# ---------------------------------------------------------------- exercise 4: the overflow

REPORT = """
def overflow_report(S, used, offset, tau):
    share = (torch.exp2(S - used + offset) > 448).double().mean().item()
    safe = math.floor(math.log2(448) - tau)
    return share, safe
"""


@pytest.mark.parametrize(
    "edits",
    [
        (),
        (("torch.exp2(S - used + offset) > 448", "S - used + offset > math.log2(448)"),),
        ((".double().mean().item()", ".double().mean()"),),
        (("math.floor(math.log2(448) - tau)", "max(n for n in range(-20, 20) if 2.0 ** (tau + n) <= 448)"),),
        (("return share, safe", "return [share, float(safe)]"),),
    ],
)  # fmt: skip
def test_exercise_4_gives_full_marks_to(edits: tuple) -> None:
    for seed in (0, 3):
        earns("v3v4.overflow", written(REPORT, "overflow_report", *edits), 15, seed=seed)


@pytest.mark.parametrize(
    ("edits", "points", "words"),
    [
        ((("S - used + offset", "S - used"),), 7, "Is the offset in the exponent?"),
        ((("> 448).double", "> 256).double"),), 7, "limit of e4m3 is 448"),
        (((".double().mean()", ".sum()"),), 7, "That is a count"),
        ((("> 448).double", "<= 448).double"),), 7, "ones that fit"),
        ((("S - used + offset", "S + offset"),), 7, "`share` is"),
        ((("math.floor(math.log2(448) - tau)", "8"),), 8, "`safe` is 8. It should be 4"),
        ((("math.floor(math.log2(448) - tau)", "math.ceil(math.log2(448) - tau)"),), 8, "`safe` is"),
        ((("math.log2(448) - tau", "math.log2(448) - offset"),), 8, "`safe` is"),
        ((("math.floor(math.log2(448) - tau)", "math.log2(448) - tau"),), 8, "`safe` is"),
        ((("return share, safe", "return safe"),), 0, "Return 2 things"),
        ((("return share, safe", "return safe, share"),), 0, "`share` is"),
    ],
)  # fmt: skip
def test_exercise_4_takes_marks_for(edits: tuple, points: float, words: str) -> None:
    earns("v3v4.overflow", written(REPORT, "overflow_report", *edits), points, words, seed=0)
