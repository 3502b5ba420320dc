"""What the checks of lesson 02_online_softmax say about each usual slip."""

from __future__ import annotations

from flashcourse.checks.marks import Finding
from flashcourse.words import Text

NO_MAX = Text(
    "Somewhere a score goes into `exp` as it is. Subtract the maximum first.",
    "有分数没有减最大值就直接进了 `exp`。请先减去最大值。",
)


FROM_ZERO = Text(
    "Your maximum starts at 0, so it never gets below 0. It must start at −∞.",
    "你的最大值是从 0 开始的，永远降不到 0 以下。它应该从 −∞ 开始。",
)


ONE_MAX = Text(
    "You took one maximum over all rows. Each row has its own: `dim=-1, keepdim=True`.",
    "你对所有行取了同一个最大值。每行应有自己的最大值：`dim=-1, keepdim=True`。",
)


NO_CORRECTION = Text(
    "The old sum was added as it was. It is measured from the old maximum: multiply it by "
    "α = exp(m_old − m_new). If you do, is `m` still the old maximum on that line?",
    "旧的指数和被原样加了进来，可它以旧的最大值为基准。要乘 α = exp(m_old − m_new)。"
    "如果乘了，那一行里的 `m` 还是旧的最大值吗？",
)


INVERSE = Text(
    "The correction is upside down: your factor is exp(m_new − m_old) ≥ 1. It must be "
    "exp(m_old − m_new) ≤ 1.",
    "修正因子反了：你用的是 exp(m_new − m_old) ≥ 1，应为 exp(m_old − m_new) ≤ 1。",
)


TWO_BASES = Text(
    "The tile's sum is measured from m_new already. Multiplying it by exp(m_block − m_new) "
    "as well corrects it twice.",
    "块内的指数和已经以 m_new 为基准，再乘 exp(m_block − m_new) 就修正了两次。",
)


BLOCK_BASE = Text(
    "The tile's sum is measured from m_block, the old one from m_new. Bring both to m_new.",
    "块内的指数和以 m_block 为基准，旧的却以 m_new 为基准。请把两者统一到 m_new。",
)


OLD_BASE = Text(
    "The new term is measured from the old maximum. Use m_new.",
    "新的一项以旧的最大值为基准了，应当用 m_new。",
)


ALPHA_ON_NEW = Text(
    "α is on the new term. It belongs to the old sum.", "α 乘到新的一项上了，它应该乘旧的指数和。"
)


ALPHA_ON_BOTH = Text(
    "α is on both terms. The new one is measured from m_new already.",
    "α 把两项都乘了。新的一项已经以 m_new 为基准，不用再乘。",
)


NO_NEW = Text("The new term is missing.", "漏了新的一项。")


NO_OLD = Text("The old sum is missing.", "漏了旧的指数和。")


ALL_ROWS = Text(
    "You summed over all rows. Each row has its own sum: `dim=-1, keepdim=True`.",
    "你对所有行一起求了和。每行应有自己的和：`dim=-1, keepdim=True`。",
)


SUM_HINTS = (
    Text("Which maximum is the old sum measured from?", "旧的指数和是以哪个最大值为基准的？"),
    Text(
        "l_new = exp(m_old − m_new) · l_old + Σ exp(x − m_new)",
        "l_new = exp(m_old − m_new) · l_old + Σ exp(x − m_new)",
    ),
)


SUM_AS_IT_IS = Text(
    "The sums were added as they were, but they are measured from different maxima.",
    "两个指数和被原样相加，可它们的基准不同。",
)


ONE_SIDE = Text(
    "Only one side was brought to the common base. Either side may hold the smaller maximum.",
    "只有一边换到了共同的基准。两边都可能是最大值较小的一边。",
)


SWAPPED = Text(
    "A's factor is on B's sum, and B's on A's.", "A 的因子乘到了 B 上，B 的乘到了 A 上。"
)


WEIGHTS = Text(
    "These are the factors alone. Multiply each by its own sum.",
    "这只是两个因子，还要各自乘上自己的指数和。",
)


LOG_SUM = Text(
    "This is m + log l, the log-sum-exp. Here `l` itself is asked for.",
    "这是 m + log l，即 log-sum-exp。这里要的是 `l` 本身。",
)


MERGE_HINTS = (
    Text(
        "From which maximum is each of the two sums measured?", "两个指数和各以哪个最大值为基准？"
    ),
    Text(
        "w_a = exp(m_a − m)·l_a, w_b = exp(m_b − m)·l_b, l = w_a + w_b, O = (w_a·O_a + w_b·O_b)/l",
        "w_a = exp(m_a − m)·l_a，w_b = exp(m_b − m)·l_b，l = w_a + w_b，O = (w_a·O_a + w_b·O_b)/l",
    ),
)


PLAIN = Text(
    "The two outputs don't count the same: weight each by its share of the sum.",
    "两个输出的分量不一样：要按各自在指数和里的份额加权。",
)


NOTHING_RIGHT = Finding(
    Text(
        "Get `m` right first; this is looked at afterwards.",
        "请先把 `m` 写对，再看这一项。",
    )
)


NO_SUM = Finding(
    Text(
        "Get `l` right first; the order of merging is looked at afterwards.",
        "请先把 `l` 写对，再看合并的次序。",
    )
)


NO_RUNNING_SUM = Finding(
    Text(
        "Get `ls` right first; `y` is looked at afterwards.",
        "请先把 `ls` 写对，再看 `y`。",
    )
)


FORM_ALONE = Finding(
    Text(
        "The form is right, but it counts only once something else is.",
        "形式没有问题，但要等别的项有一项对了才计分。",
    )
)


ONE_BASE = Finding(
    Text(
        "Your `ms` never changes, though the scores rise. So no old sum ever needs a correction, "
        "and the correction is what `ls` is about. Get `ms` right first.",
        "分数一路上升，你的 `ms` 却从不改变，所以旧的指数和根本用不着修正。"
        "而 `ls` 考的就是修正。请先把 `ms` 写对。",
    ),
    todo=2,
    variable="l_new",
    hints=SUM_HINTS,
)


SUM_AGAIN = Finding(
    Text(
        "Your sum is right, but it goes through the earlier elements again at each step. Keep the "
        "old sum, correct it, and add one term.",
        "指数和是对的，但每一步都把前面的元素重新加了一遍。请保留旧的指数和，修正它，再加一项。",
    ),
    todo=2,
    variable="l_new",
    hints=SUM_HINTS,
)


SAFE_HINTS = (
    Text("What is the largest exponent that may reach `exp`?", "进入 `exp` 的指数最大可以是多少？"),
    Text(
        "y = exp(x − m) / Σ exp(x − m), with m = max x", "y = exp(x − m) / Σ exp(x − m)，m = max x"
    ),
)
