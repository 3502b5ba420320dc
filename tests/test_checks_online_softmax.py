"""Lesson 02_online_softmax: right answers in several styles get full marks, wrong ones what they
deserve, and each common slip is named."""

import math
from functools import partial

import numpy as np
import pytest
import torch

from flashcourse.checks import exercises, mark, merging, online_softmax, probe

INF = math.inf


def misconceptions(marks):
    return {finding.misconception for finding in marks.findings}


def check_deserved(exercise, answer, points, misconception, seeds=(0, 1, 2)):
    for seed in seeds:
        marks = mark(exercise, answer, "en", seed=seed)
        assert marks.points == points, (seed, marks.findings)
        assert misconception in misconceptions(marks), marks.findings
        for finding in marks.findings:
            assert finding.text.en and finding.text.zh


def check_right(exercise, answer, seeds=(0, 1, 2, 3, 4)):
    for seed in seeds:
        marks = mark(exercise, answer, "en", seed=seed)
        assert marks.findings == ()
        assert marks.status == "right"
        assert marks.points == marks.max_points


@pytest.mark.parametrize("exercise", ["safe", "online", "tiles", "merge"])
class TestWhatIsNotAnAnswer:
    def test_a_function_left_as_it_came_is_unfinished(self, exercise):
        def left(*args):
            raise NotImplementedError("Not finished yet")

        marks = mark(f"softmax.{exercise}", left)
        assert (marks.points, marks.status) == (0, "unfinished")

    def test_a_function_that_returns_nothing_is_unfinished(self, exercise):
        marks = mark(f"softmax.{exercise}", lambda *args: None)
        assert (marks.points, marks.status) == (0, "unfinished")

    def test_an_exception_is_a_crash_and_is_named(self, exercise):
        marks = mark(f"softmax.{exercise}", lambda *args: 1 / 0)
        assert (marks.points, marks.status) == (0, "crashed")
        assert "ZeroDivisionError" in marks.findings[0].text.en

    def test_a_string_is_wrong(self, exercise):
        marks = mark(f"softmax.{exercise}", lambda *args: "0.5")
        assert (marks.points, marks.status) == (0, "wrong")

    def test_numpy_is_told_from_torch(self, exercise):
        marks = mark(f"softmax.{exercise}", lambda *args: np.zeros(3))
        assert (marks.points, marks.status) == (0, "wrong")


ODD = (
    torch.zeros(9, dtype=torch.complex64),
    torch.zeros(9, device="meta"),
    torch.zeros(9).to_sparse(),
    torch.zeros(9, dtype=torch.int64),
    torch.zeros(9, dtype=torch.bool),
    torch.zeros(0),
)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_tensor_is_wrong_and_breaks_nothing(odd):
    answers = {
        "safe": lambda x: odd[: len(x)] if odd.is_complex() else odd,
        "online": lambda x: (odd, odd, odd),
        "tiles": lambda m, l, x: (odd, odd),
        "merge": lambda a, b: (odd, odd, odd),
    }
    for exercise, answer in answers.items():
        marks = mark(f"softmax.{exercise}", answer)
        assert (marks.points, marks.status) == (0, "wrong")


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int64, torch.bool])
def test_a_tensor_of_the_right_shape_and_another_kind_breaks_nothing(dtype):
    answers = {
        "safe": lambda x: x.to(dtype),
        "online": lambda x: (x.to(dtype),) * 3,
        "tiles": lambda m, l, x: (torch.nan_to_num(m).to(dtype), l.to(dtype)),
        "merge": lambda a, b: tuple(torch.nan_to_num(t).to(dtype) for t in a),
    }
    for exercise, answer in answers.items():
        assert mark(f"softmax.{exercise}", answer).status == "wrong"


def test_the_points_are_the_lessons():
    points = {name: e.points for name, e in exercises().items() if name.startswith("softmax.")}
    assert points == {
        "softmax.safe": 15,
        "softmax.online": 20,
        "softmax.tiles": 20,
        "softmax.merge": 30,
    }


# ---------------------------------------------------------------- safe softmax


def safe_three_lines(x):
    m = x.max()
    l = torch.exp(x - m).sum()
    return torch.exp(x - m) / l


def safe_by_log(x):
    m = x.max()
    return torch.exp(x - m - torch.log(torch.exp(x - m).sum()))


def safe_in_base_two(x):
    p = torch.pow(2.0, (x - x.amax()) * math.log2(math.e))
    return torch.einsum("i,->i", p, 1 / p.sum())


def safe_in_float64(x):
    m = torch.sort(x.double()).values[-1]
    e = math.e ** (x.double() - m)
    return (e / torch.ones_like(e).dot(e)).to(x.dtype)


def safe_by_loop(x):
    m = -INF
    for value in x.tolist():
        m = max(m, value)
    e = torch.stack([torch.exp(value - m) for value in x])
    return e / e.sum()


def safe_in_its_own_copy(x):
    y = x.clone()
    y -= y.max()
    y.exp_()
    y /= y.sum()
    return y


@pytest.mark.parametrize(
    "answer",
    [
        safe_three_lines,
        safe_by_log,
        safe_in_base_two,
        safe_in_float64,
        safe_by_loop,
        safe_in_its_own_copy,
    ],
)
def test_right_ways_to_write_the_safe_softmax(answer):
    check_right("softmax.safe", answer)


def safe_by_added_logarithms(x):
    total = x[0]
    for value in x[1:]:
        total = torch.logaddexp(total, value)
    return torch.exp(x - total)


def safe_by_attention(x):
    key, value = x[None, None, :, None], torch.eye(len(x), dtype=x.dtype)[None, None]
    one = torch.ones(1, 1, 1, 1, dtype=x.dtype)
    attention = torch.nn.functional.scaled_dot_product_attention
    return attention(one, key, value, scale=1.0)[0, 0, 0]


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: torch.softmax(x, dim=0),
        lambda x: torch.nn.functional.softmax(x.double(), dim=0).to(x.dtype),
        torch.nn.Softmax(dim=0),
        lambda x: torch.log_softmax(x, dim=0).exp(),
        lambda x: torch.exp(x - torch.logsumexp(x, dim=0)),
        lambda x: torch.distributions.Categorical(logits=x).probs,
        safe_by_added_logarithms,
        safe_by_attention,
    ],
)
def test_a_ready_made_softmax_is_none_of_ones_own(answer):
    check_deserved("softmax.safe", answer, 0, "ready_made", seeds=(0, 1))


@pytest.mark.parametrize(
    "answer",
    [lambda x: x, lambda x: x * 0, lambda x: torch.full_like(x, 1 / len(x)), lambda x: x / x.sum()],
)
def test_a_right_form_alone_is_no_softmax(answer):
    check_deserved("softmax.safe", answer, 0, None)


def safe_without_maximum(x):
    return torch.exp(x) / torch.exp(x).sum()


def safe_without_division(x):
    return torch.exp(x - x.max())


def safe_by_mean(x):
    e = torch.exp(x - x.max())
    return e / e.mean()


def safe_as_logarithm(x):
    m = x.max()
    return x - m - torch.log(torch.exp(x - m).sum())


def safe_from_zero(x):
    m = torch.clamp(x.max(), min=0)
    return torch.exp(x - m) / torch.exp(x - m).sum()


def safe_sign_reversed(x):
    e = torch.exp(x.max() - x)
    return e / e.sum()


def safe_base_two(x):
    e = torch.exp2(x - x.max())
    return e / e.sum()


def safe_in_place(x):
    x -= x.max()
    return torch.exp(x) / torch.exp(x).sum()


def safe_in_float32(x):
    return safe_three_lines(x.float())


def safe_subtracting_an_index(x):
    m = x.max(dim=0)[1]
    return torch.exp(x - m) / torch.exp(x - m).sum()


def safe_subtracting_the_minimum(x):
    e = torch.exp(x - x.min())
    return e / e.sum()


@pytest.mark.parametrize(
    ("answer", "points", "misconception"),
    [
        (safe_without_maximum, 10, "no_max"),
        (safe_without_division, 0, "not_normalised"),
        (safe_by_mean, 0, "divided_by_mean"),
        (safe_as_logarithm, 0, "log_softmax"),
        (safe_from_zero, 10, "max_from_zero"),
        (safe_sign_reversed, 0, "sign_reversed"),
        (safe_base_two, 0, "base_two"),
        (safe_in_place, 13, "input_changed"),
        (safe_in_float32, 13, None),
        (safe_subtracting_an_index, 10, "no_max"),
        (safe_subtracting_the_minimum, 8, None),
    ],
)
def test_wrong_safe_softmaxes(answer, points, misconception):
    check_deserved("softmax.safe", answer, points, misconception)


# ---------------------------------------------------------------- online, element by element


def online_with(step, start=(-INF, 0.0), last=lambda x, m, l, ms, ls: torch.exp(x - m) / l):
    """An online softmax that takes in an element by `step` (m, l, x_j, x) → m_new, l_new."""

    def answer(x):
        m, l = torch.tensor(start[0], dtype=x.dtype), torch.tensor(start[1], dtype=x.dtype)
        ms, ls = [], []
        for x_j in x:
            m, l = step(m, l, x_j, x)
            ms.append(m)
            ls.append(l)
        ms, ls = torch.stack(ms), torch.stack(ls)
        return last(x, m, l, ms, ls), ms, ls

    return answer


exp, larger = torch.exp, torch.maximum


def right_step(m, l, x_j, x):
    m_new = larger(m, x_j)
    return m_new, l * exp(m - m_new) + exp(x_j - m_new)


def branching_step(m, l, x_j, x):
    if x_j > m:
        return x_j, l * exp(m - x_j) + 1
    return m, l + exp(x_j - m)


def online_after_all_maxima(x):
    ms = torch.cummax(x, 0).values
    ls, l = torch.empty_like(x), torch.zeros((), dtype=x.dtype)
    for j in range(len(x)):
        l = (l * exp(ms[j - 1] - ms[j]) if j else l) + exp(x[j] - ms[j])
        ls[j] = l
    return exp(x - ms[-1]) / ls[-1], ms, ls


def online_in_one_column(x):
    ms, ls = (torch.zeros_like(x) for _ in range(2))
    ms[0], ls[0] = x[0], 1
    for j in range(1, len(x)):
        ms[j] = x[j] if x[j] > ms[j - 1] else ms[j - 1]
        pair = torch.stack([ms[j - 1], x[j]]) - ms[j]
        ls[j] = torch.einsum("i,i->", pair.exp(), torch.stack([ls[j - 1], torch.ones_like(x[j])]))
    return (x - ms[-1]).exp().div_(ls[-1]), ms, ls


def online_with_y_at_each_step(x):
    m, l, y, ms, ls = x[0] - INF, x[0] * 0, x, [], []
    for x_j in x:
        m, l = right_step(m, l, x_j, x)
        y = exp(x - m) / l
        ms.append(m)
        ls.append(l)
    return y, torch.stack(ms), torch.stack(ls)


def online_in_python_numbers(x):
    m, l, ms, ls = -INF, 0.0, [], []
    for value in x.tolist():
        new = max(m, value)
        l = l * math.exp(m - new) + math.exp(value - new)
        m = new
        ms.append(m)
        ls.append(l)
    ms, ls = torch.tensor(ms, dtype=x.dtype), torch.tensor(ls, dtype=x.dtype)
    return torch.exp(x - m) / l, ms, ls


@pytest.mark.parametrize(
    "answer",
    [
        online_with(right_step),
        online_with(branching_step),
        online_with(right_step, start=(-INF, 1.0)),
        online_with(right_step, start=(-1e9, 0.0)),
        online_after_all_maxima,
        online_in_one_column,
        online_with_y_at_each_step,
        online_in_python_numbers,
    ],
)
def test_right_ways_to_write_the_online_softmax(answer):
    check_right("softmax.online", answer)


def no_correction(m, l, x_j, x):
    m_new = larger(m, x_j)
    return m_new, l + exp(x_j - m_new)


def m_overwritten_first(m, l, x_j, x):
    m = larger(m, x_j)
    return m, l * exp(m - m) + exp(x_j - m)


def inverse(m, l, x_j, x):
    m_new = larger(m, x_j)
    return m_new, l * exp(m_new - m) + exp(x_j - m_new)


def old_base(m, l, x_j, x):
    m_new = larger(m, x_j)
    return m_new, l * exp(m - m_new) + exp(x_j - m)


def newest_only(m, l, x_j, x):
    return x_j, l * exp(m - x_j) + 1


def all_of_x(m, l, x_j, x):
    return x.max(), l + exp(x_j - x.max())


def on_both(m, l, x_j, x):
    m_new = larger(m, x_j)
    alpha = exp(m - m_new) if l > 0 else 1.0
    return m_new, (l + exp(x_j - m_new)) * alpha


def unshifted(m, l, x_j, x):
    m_new = larger(m, x_j)
    return m_new, l * exp(m - m_new) + exp(x_j)


def divided_by_history(x, m, l, ms, ls):
    return torch.exp(x - ms) / ls


@pytest.mark.parametrize(
    ("answer", "points", "misconception"),
    [
        (online_with(no_correction), 12, "no_correction"),
        (online_with(m_overwritten_first), 12, "no_correction"),
        (online_with(inverse), 7, "inverse_correction"),  # NaN: no y can be judged by it
        (online_with(old_base), 7, "old_base"),  # nor where l is infinite
        (online_with(right_step, start=(0.0, 0.0)), 14, "max_from_zero"),
        (online_with(newest_only), 14, "max_of_newest"),
        (online_with(all_of_x), 6, "max_of_all"),  # nothing was ever corrected
        (online_with(on_both), 12, "correction_on_both"),
        (online_with(unshifted), 12, "no_max"),
        (online_with(right_step, last=divided_by_history), 15, "history_not_last"),
        (online_with(right_step, last=lambda x, m, *_: torch.exp(x - m)), 15, "not_normalised"),
    ],
)
def test_wrong_online_softmaxes_lose_the_part_that_is_wrong(answer, points, misconception):
    check_deserved("softmax.online", answer, points, misconception)


def test_only_the_last_state_is_not_the_history():
    def answer(x):
        m = x.max()
        return torch.softmax(x, 0), m, torch.exp(x - m).sum()

    marks = mark("softmax.online", answer, "en")
    assert marks.points == 0
    assert "`ms`" in marks.findings[0].text.en


def online_ready_made(x):
    ms = torch.cummax(x, 0).values
    return torch.softmax(x, 0), ms, exp(torch.logcumsumexp(x, 0) - ms)


def online_by_added_logarithms(x):
    ms, L = torch.cummax(x, 0).values, [x[0]]
    for x_j in x[1:]:
        L.append(torch.logaddexp(L[-1], x_j))
    ls = exp(torch.stack(L) - ms)
    return exp(x - ms[-1]) / ls[-1], ms, ls


def online_by_softmaxes(x):
    # The largest share is 1 / l.
    ms = torch.cummax(x, 0).values
    ls = torch.stack([1 / torch.softmax(x[: j + 1], 0).max() for j in range(len(x))])
    return exp(x - ms[-1]) / ls[-1], ms, ls


@pytest.mark.parametrize(
    ("answer", "points"),
    [
        (online_ready_made, 7),
        (online_by_added_logarithms, 12),
        (online_by_softmaxes, 7),
        (online_with(right_step, last=lambda x, *_: torch.softmax(x, 0)), 15),
    ],
)
def test_what_comes_ready_made_is_none_of_the_online_softmax(answer, points):
    check_deserved("softmax.online", answer, points, "ready_made", seeds=(0, 1))


def sums_of_a_matrix(x):
    ms = torch.cummax(x, 0).values
    ls = torch.tril(exp(x - ms[:, None])).sum(dim=1)
    return exp(x - ms[-1]) / ls[-1], ms, ls


def sums_from_the_first_element(x):
    ms = torch.cummax(x, 0).values
    ls = torch.stack([exp(x[: j + 1] - ms[j]).sum() for j in range(len(x))])
    return exp(x - ms[-1]) / ls[-1], ms, ls


@pytest.mark.parametrize("answer", [sums_of_a_matrix, sums_from_the_first_element])
def test_a_sum_that_begins_anew_at_each_element_does_not_run(answer):
    marks = mark("softmax.online", answer, "en")
    assert marks.points == 12
    assert "Keep the old sum" in marks.findings[0].text.en


@pytest.mark.parametrize(
    ("answer", "points"),
    [
        (lambda x: (x, x, x), 0),
        (lambda x: (x, x - INF, x), 0),
        (lambda x: (x, x * INF, x * 0), 0),
        (lambda x: (x, x * 0 + 3e38, x * 0), 0),
        (lambda x: (x, x * math.nan, x), 0),
        (lambda x: (exp(x), x * 0, x * 0 + 1), 0),
        (lambda x: (x * math.nan, torch.cummax(x, 0).values, x * math.nan), 7),
        (lambda x: (exp(x - x.max()), torch.cummax(x, 0).values, x * 0 + 1), 7),
        (lambda x: (exp(x) / exp(x).sum(), x * 0, exp(x).cumsum(0)), 6),
    ],
)
def test_a_maximum_by_which_nothing_can_be_judged_earns_nothing_further(answer, points):
    for seed in (0, 1, 2):
        assert mark("softmax.online", answer, "en", seed=seed).points == points


def test_a_state_in_float32_costs_one_point():
    def answer(x):
        y, ms, ls = online_after_all_maxima(x)
        return y, ms.float(), ls.float()

    assert mark("softmax.online", answer).points == 19


def test_the_finding_names_the_first_wrong_element_and_both_numbers():
    def answer(x):
        y, ms, ls = online_after_all_maxima(x)
        if len(ls) > 4:
            ls[4] += 1
        return y, ms, ls

    marks = mark("softmax.online", answer, "en")
    assert marks.points == 12
    assert "After element 4, `ls[4]` is " in marks.findings[0].text.en
    assert marks.findings[0].misconception is None


# ---------------------------------------------------------------- online, tile by tile


def tile_new_base(m, l, x):
    m_new = larger(m, x.max(dim=-1, keepdim=True).values)
    return m_new, l * exp(m - m_new) + exp(x - m_new).sum(dim=-1, keepdim=True)


def tile_block_base(m, l, x):
    m_block = x.amax(-1, keepdim=True)
    l_block = exp(x - m_block).sum(-1, keepdim=True)
    m_new = larger(m, m_block)
    return m_new, l * exp(m - m_new) + l_block * exp(m_block - m_new)


def tile_by_columns(m, l, x):
    for j in range(x.shape[1]):
        column = x[:, j : j + 1]
        m_new = larger(m, column)
        m, l = m_new, l * exp(m - m_new) + exp(column - m_new)
    return m, l


def tile_by_product(m, l, x):
    m_new = torch.cat([m, x], dim=-1).amax(dim=-1, keepdim=True)
    new = torch.einsum("rb->r", exp(x - m_new)).unsqueeze(-1)
    return m_new, torch.addcmul(new, l, exp(m - m_new))


def tile_in_its_own_copy(m, l, x):
    top, total = m.clone(), l.clone()
    torch.maximum(m, x.max(dim=1, keepdim=True)[0], out=top)
    total.mul_((m - top).exp_())
    total += (x - top).exp_().sum(1, keepdim=True)
    return top, total


def tile_by_rows(m, l, x):
    done = [tile_new_base(m[r : r + 1], l[r : r + 1], x[r : r + 1]) for r in range(len(x))]
    return torch.cat([m for m, _ in done]), torch.cat([l for _, l in done])


@pytest.mark.parametrize(
    "answer",
    [
        tile_new_base,
        tile_block_base,
        tile_by_columns,
        tile_by_product,
        tile_in_its_own_copy,
        tile_by_rows,
    ],
)
def test_right_ways_to_update_by_tiles(answer):
    check_right("softmax.tiles", answer)


def tile_by_logsumexp(m, l, x):
    m_new = larger(m, x.amax(-1, keepdim=True))
    total = torch.logsumexp(torch.cat([m + l.log(), x], dim=-1), dim=-1, keepdim=True)
    return m_new, exp(total - m_new)


def tile_by_logaddexp(m, l, x):
    m_new = larger(m, x.amax(-1, keepdim=True))
    total = m + l.log()
    for column in x.split(1, dim=1):
        total = torch.logaddexp(total, column)
    return m_new, exp(total - m_new)


@pytest.mark.parametrize("answer", [tile_by_logsumexp, tile_by_logaddexp])
def test_a_ready_made_sum_earns_only_the_maximum(answer):
    check_deserved("softmax.tiles", answer, 9, "ready_made")


@pytest.mark.parametrize(
    "answer",
    [
        lambda m, l, x: (m, l),
        lambda m, l, x: (torch.full_like(m, 3e38), l * 0),
        lambda m, l, x: (torch.full_like(m, -INF), l * 0),
        lambda m, l, x: (torch.full_like(m, math.nan), l),
        lambda m, l, x: (x[:, :1], l),
    ],
)
def test_a_tile_that_was_not_looked_at_earns_nothing(answer):
    for seed in (0, 1, 2):
        assert mark("softmax.tiles", answer, "en", seed=seed).points == 0


def tile_with(m_of=lambda m, x: larger(m, x.amax(-1, keepdim=True)), l_of=None):
    def answer(m, l, x):
        m_new = m_of(m, x)
        new = exp(x - m_new).sum(-1, keepdim=True)
        l_new = l * exp(m - m_new) + new if l_of is None else l_of(m, l, x, m_new, new)
        return m_new, l_new

    return answer


def keepdim_lost(m, l, x):
    m_new = larger(m.squeeze(-1), x.amax(-1))
    return m_new, l.squeeze(-1) * exp(m.squeeze(-1) - m_new) + exp(x - m_new[:, None]).sum(-1)


def beta_twice(m, l, x, m_new, new):
    return l * exp(m - m_new) + new * exp(x.amax(-1, keepdim=True) - m_new)


def block_base_alone(m, l, x, m_new, new):
    return l * exp(m - m_new) + exp(x - x.amax(-1, keepdim=True)).sum(-1, keepdim=True)


def tile_in_place(m, l, x):
    m_new = larger(m, x.amax(-1, keepdim=True))
    l *= exp(m - m_new)
    l += exp(x - m_new).sum(-1, keepdim=True)
    return m_new, l


@pytest.mark.parametrize(
    ("answer", "points", "misconception"),
    [
        (tile_with(m_of=lambda m, x: larger(m, x.max())), 12, "max_of_all_rows"),
        (tile_with(m_of=lambda m, x: x.amax(-1, keepdim=True)), 12, "max_of_tile"),
        (tile_with(m_of=lambda m, x: larger(m, x.amax(-1, keepdim=True)).clamp(min=0)), 12,
         "max_from_zero"),
        (tile_with(l_of=lambda m, l, x, m_new, new: l + new), 9, "no_correction"),
        (tile_with(l_of=lambda m, l, x, m_new, new: l * exp(m_new - m) + new), 9,
         "inverse_correction"),
        (tile_with(l_of=beta_twice), 9, "beta_twice"),
        (tile_with(l_of=block_base_alone), 9, "block_base"),
        (tile_with(l_of=lambda m, l, x, m_new, new: l * exp(m - m_new) + new.sum()), 9,
         "sum_of_all_rows"),
        (tile_with(l_of=lambda m, l, x, m_new, new: new), 9, "old_sum_missing"),
        (tile_in_place, 19, "input_changed"),
        (keepdim_lost, 0, None),
    ],
)  # fmt: skip
def test_wrong_updates_by_tiles_lose_the_part_that_is_wrong(answer, points, misconception):
    check_deserved("softmax.tiles", answer, points, misconception)


def test_a_lost_keepdim_is_told_by_its_shape():
    marks = mark("softmax.tiles", keepdim_lost, "en")
    assert "(3, 1)" in marks.findings[0].text.en


# ---------------------------------------------------------------- merge


def weights(a, b, m):
    base = torch.where(torch.isinf(m), torch.zeros_like(m), m)
    return exp(a[0] - base) * a[1], exp(b[0] - base) * b[1]


def merge_guarded(a, b):
    m = larger(a[0], b[0])
    w_a, w_b = weights(a, b, m)
    l = w_a + w_b
    return m, l, (w_a * a[2] + w_b * b[2]) / torch.where(l == 0, torch.ones_like(l), l)


def merge_repaired_afterwards(a, b):
    m = larger(a[0], b[0])
    w_a, w_b = (torch.nan_to_num(exp(s[0] - m) * s[1]) for s in (a, b))
    l = w_a + w_b
    return m, l, torch.nan_to_num((w_a * a[2] + w_b * b[2]) / l)


def merge_with_branches(a, b):
    rows = []
    for r in range(len(a[0])):
        one, other = ([t[r : r + 1] for t in s] for s in (a, b))
        if one[1] == 0:
            rows.append(other)
        elif other[1] == 0:
            rows.append(one)
        else:
            rows.append(merge_guarded(one, other))
    return tuple(torch.cat(parts) for parts in zip(*rows, strict=True))


def merge_by_logsumexp(a, b):
    m = larger(a[0], b[0])
    L_a, L_b = a[0] + a[1].log(), b[0] + b[1].log()
    L = torch.logaddexp(L_a, L_b)
    seen = torch.isfinite(L)
    safe = torch.where(seen, L, torch.zeros_like(L))
    l = torch.where(seen, exp(safe - torch.where(seen, m, torch.zeros_like(m))), 0.0)
    return m, l, exp(L_a - safe) * a[2] + exp(L_b - safe) * b[2]


def merge_with_eps(a, b):
    m = larger(a[0], b[0])
    w_a, w_b = weights(a, b, m)
    l = w_a + w_b
    return m, l, (w_a * a[2] + w_b * b[2]) / l.clamp(min=1e-300)


@pytest.mark.parametrize(
    "answer",
    [merge_guarded, merge_repaired_afterwards, merge_with_branches, merge_by_logsumexp,
     merge_with_eps],
)  # fmt: skip
def test_right_ways_to_merge(answer):
    check_right("softmax.merge", answer)


def merge_with(m_of=None, l_of=None, O_of=None):
    """A merge with one slip, guarded like the right one."""

    def answer(a, b):
        m = larger(a[0], b[0]) if m_of is None else m_of(a, b)
        w_a, w_b = weights(a, b, m)
        l = w_a + w_b if l_of is None else l_of(a, b, m)
        total = torch.where(l == 0, torch.ones_like(l), l)
        O = (w_a * a[2] + w_b * b[2]) / total if O_of is None else O_of(a, b, w_a, w_b, total)
        return m, l, O

    return answer


def unguarded(a, b):
    m = larger(a[0], b[0])
    w_a, w_b = exp(a[0] - m) * a[1], exp(b[0] - m) * b[1]
    return m, w_a + w_b, (w_a * a[2] + w_b * b[2]) / (w_a + w_b)


def guarded_in_l_only(a, b):
    m = larger(a[0], b[0])
    w_a, w_b = weights(a, b, m)
    return m, w_a + w_b, (w_a * a[2] + w_b * b[2]) / (w_a + w_b)


def factors_without_sums(a, b, w_a, w_b, l):
    share_a = torch.where(a[1] == 0, 0.0, w_a / a[1])
    share_b = torch.where(b[1] == 0, 0.0, w_b / b[1])
    return (share_a * a[2] + share_b * b[2]) / l


def merge_in_float32(a, b):
    merged = merge_guarded([t.float() for t in a], [t.float() for t in b])
    return tuple(t.double() for t in merged)


def merge_without_maximum(a, b):
    # Sums with no maximum subtracted: right until the scores are large.
    m = larger(a[0], b[0])
    L_a, L_b = exp(a[0]) * a[1], exp(b[0]) * b[1]
    L = L_a + L_b
    seen = L > 0
    O = torch.where(seen, (L_a * a[2] + L_b * b[2]) / torch.where(seen, L, 1.0), 0.0)
    return m, torch.where(seen, L / exp(m), 0.0), O


def merge_in_place(a, b):
    m, l, O = merge_guarded(a, b)
    a[0].copy_(m)
    return m, l, O


@pytest.mark.parametrize(
    ("answer", "points", "misconception"),
    [
        (unguarded, 25, "inf_minus_inf"),
        (guarded_in_l_only, 25, "zero_by_zero"),
        (merge_with(l_of=lambda a, b, m: a[1] + b[1]), 17, "no_correction"),
        (merge_with(l_of=lambda a, b, m: weights(a, b, m)[0] + b[1]), 17, "one_side_only"),
        (merge_with(O_of=lambda a, b, w_a, w_b, l: w_a * a[2] + w_b * b[2]), 22, "not_normalised"),
        (merge_with(O_of=factors_without_sums), 22, "sums_forgotten"),
        (merge_with(O_of=lambda a, b, w_a, w_b, l: (a[2] + b[2]) / 2), 22, "plain_mean"),
        (merge_with(O_of=lambda a, b, w_a, w_b, l: a[2] + b[2]), 22, "plain_mean"),
        (merge_with(O_of=lambda a, b, w_a, w_b, l: (w_b * a[2] + w_a * b[2]) / l), 22, None),
        (merge_in_float32, 25, None),
        (merge_without_maximum, 25, None),
        (merge_in_place, 25, "input_changed"),
    ],
)
def test_wrong_merges_lose_the_part_that_is_wrong(answer, points, misconception):
    check_deserved("softmax.merge", answer, points, misconception)


def test_m_taken_from_one_side_is_told():
    marks = mark("softmax.merge", merge_with(m_of=lambda a, b: a[0]), "en")
    assert "one_side_only" in misconceptions(marks)
    assert marks.points < 30


@pytest.mark.parametrize(
    ("answer", "points"),
    [
        (lambda a, b: a, 0),
        (lambda a, b: (torch.full_like(a[0], 3e38), a[1] * 0, a[2]), 0),
        (lambda a, b: (torch.full_like(a[0], math.nan), a[1], a[2]), 0),
        (lambda a, b: (torch.maximum(a[0], b[0]), a[1], a[2]), 4),
        (lambda a, b: (torch.maximum(a[0], b[0]), a[1] * 0, a[2] * 0), 4),
    ],
)
def test_a_state_that_is_no_merge_earns_at_most_its_maximum(answer, points):
    for seed in (0, 1, 2):
        assert mark("softmax.merge", answer, "en", seed=seed).points == points


def test_everything_wrong_earns_nothing():
    marks = mark("softmax.merge", lambda a, b: (a[0] + b[0], a[1] * 0 + 7, a[2] + 9), "en")
    assert (marks.points, marks.status) == (0, "wrong")


@pytest.mark.parametrize("exercise", ["safe", "online", "tiles", "merge"])
def test_an_answer_that_never_ends_is_too_slow_and_is_asked_only_once(exercise, monkeypatch):
    for module in (online_softmax, merging):
        monkeypatch.setattr(module, "call", partial(probe.call, seconds=0.5))
    asked = []

    def answer(*args):
        asked.append(args)
        while True:
            pass

    marks = mark(f"softmax.{exercise}", answer)
    assert (marks.points, marks.status, len(asked)) == (0, "too_slow", 1)
