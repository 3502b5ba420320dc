"""What a wrong value usually means: an id, and a hint in three steps that asks before it tells.

The rule that recognises each one is in `forward_rules.py`. A hint is shown only when exactly one
rule fits every tile of the run.
"""

from __future__ import annotations

from dataclasses import dataclass

from flashcourse.words import Text


@dataclass(frozen=True)
class Misconception:
    """todo: where it shows. question, formula, line: the three steps of the hint."""

    id: str
    todo: int
    question: Text
    formula: Text
    line: Text

    @property
    def hints(self) -> tuple[Text, ...]:
        return (self.question, self.formula, self.line)


def _code(line: str) -> Text:
    return Text(line, line)


_SCORES = "`S_ij = q_block @ k_block.transpose(-2, -1)`"
_BLOCK_MAX = "`m_block = S_ij.max(dim=-1, keepdim=True).values`"
_NEW_MAX = "`m_new = torch.maximum(m_i, m_block)`"
_WEIGHTS = "`P_ij = torch.exp(S_ij - m_new)`"
_BLOCK_SUM = "`l_block = P_ij.sum(dim=-1, keepdim=True)`"
_NEW_SUM = "`l_new = torch.exp(m_i - m_new) * l_i + l_block`"
_OUTPUT = "`out_i = (torch.exp(m_i - m_new) * l_i * out_i + P_ij @ v_block) / l_new`"

_S = Text("S = q kᵀ / √d", "S = q kᵀ / √d")
_M = Text(
    "m_new = max(m_old, rowmax S), one number per row", "m_new = max(m_old, rowmax S)，每行一个数"
)
_P = Text("P = exp(S − m_new)", "P = exp(S − m_new)")
_L = Text(
    "l_new = α·l_old + rowsum P, with α = exp(m_old − m_new)",
    "l_new = α·l_old + rowsum P，其中 α = exp(m_old − m_new)",
)
_O = Text(
    "O_new = (α·l_old·O_old + P V) / l_new, with α = exp(m_old − m_new)",
    "O_new = (α·l_old·O_old + P V) / l_new，其中 α = exp(m_old − m_new)",
)


def _m(id: str, todo: int, en: str, zh: str, formula: Text, line: str | Text) -> Misconception:
    said = _code(line) if isinstance(line, str) else line
    return Misconception(id, todo, Text(en, zh), formula, said)


TABLE = (
    # ---- TODO 1 ----
    _m(
        "m-starts-at-zero",
        1,
        "What is the maximum of no numbers at all? Is your first m right if all scores are −50?",
        "一个数都没有时，最大值是多少？如果所有分数都是 −50，你的第一个 m 还对吗？",
        Text("m starts at −∞, so that max(m, x) = x", "m 从 −∞ 开始，这样 max(m, x) = x"),
        "`m = torch.full((seq_len, 1), -math.inf, dtype=q.dtype, device=q.device)`",
    ),
    _m(
        "m-starts-at-plus-infinity",
        1,
        "Which is larger, your first m or the first score? What does max keep then?",
        "你的初始 m 和第一个分数，哪个大？取 max 之后留下的是谁？",
        Text("m starts at −∞, so that max(m, x) = x", "m 从 −∞ 开始，这样 max(m, x) = x"),
        "`m = torch.full((seq_len, 1), -math.inf, dtype=q.dtype, device=q.device)`",
    ),
    _m(
        "state-without-dtype",
        1,
        "The inputs are not float32 here. What dtype does torch take when you do not name one?",
        "这里的输入不是 float32。不写 dtype 时，torch 用的是哪一种？",
        Text("out has the dtype and device of q", "out 的 dtype 和 device 与 q 相同"),
        "`out = torch.zeros((seq_len, v.shape[-1]), dtype=q.dtype, device=q.device)`",
    ),
    _m(
        "uninitialised-state",
        1,
        "What is in the memory that `torch.empty` gives you? Can you count on zeros?",
        "`torch.empty` 给你的内存里装着什么？能指望它是 0 吗？",
        Text("O = 0 and l = 0 before the first tile", "第一个块之前，O = 0，l = 0"),
        "`torch.zeros(…)`",
    ),
    _m(
        "state-too-short",
        1,
        "How many query rows are there, and how many rows does this tensor have?",
        "query 一共有多少行？这个张量又有多少行？",
        Text("m, l: one row per query, (seq_len, 1)", "m、l：每个 query 一行，(seq_len, 1)"),
        "`l = torch.zeros((seq_len, 1), dtype=q.dtype, device=q.device)`",
    ),
    # ---- TODO 2 ----
    _m(
        "no-scale",
        2,
        "Divide one of your scores by the right one. Where should that factor √d have gone?",
        "用你的一个分数除以正确的分数，会得到 √d。这个因子应该在哪里除掉？",
        _S,
        "`q_block = q[i:i + block_size] * scale`",
    ),
    _m(
        "scale-twice",
        2,
        "q_block has met 1/√d already. How often does it appear in your score?",
        "q_block 已经乘过 1/√d。你的分数里它出现了几次？",
        _S,
        _SCORES,
    ),
    _m(
        "scale-inverted",
        2,
        "Do scores grow or shrink when you scale them? Yours are d times too large.",
        "缩放之后分数应该变大还是变小？你的分数大了 d 倍。",
        _S,
        "`scale = 1.0 / math.sqrt(dim)`",
    ),
    _m(
        "scores-transposed",
        2,
        "Rows of S are queries. What do the rows of yours stand for?",
        "S 的行是 query。你的 S 的行代表什么？",
        Text("S[r, c] = q_r · k_c / √d", "S[r, c] = q_r · k_c / √d"),
        _SCORES,
    ),
    _m(
        "key-not-transposed",
        2,
        "Which two axes does `@` sum over here? Each score is a dot product over dim.",
        "这里的 `@` 在哪两个轴上求和？每个分数都应该是在 dim 上做的点积。",
        Text("S[r, c] = Σ_d q[r, d] · k[c, d] / √d", "S[r, c] = Σ_d q[r, d] · k[c, d] / √d"),
        _SCORES,
    ),
    _m(
        "elementwise-product",
        2,
        "Does `*` sum anything? What shape should (rows, dim) and (cols, dim) give?",
        "`*` 会求和吗？(rows, dim) 和 (cols, dim) 应该得到什么形状？",
        _S,
        _SCORES,
    ),
    _m(
        "causal-mask",
        2,
        "Some of your scores are −∞. Did the exercise ask any query to look away?",
        "你有些分数是 −∞。题目要求过某个 query 不看某些 key 吗？",
        Text(
            "S has no mask here: every query sees every key", "本题无 mask：每个 query 看到所有 key"
        ),
        _SCORES,
    ),
    _m(
        "scores-of-another-block",
        2,
        "Your scores belong to the keys of another tile. Which loop variable cuts K?",
        "你的分数用的是另一个块的 key。切 K 用的是哪个循环变量？",
        Text("k_block = k[j : j + block_size]", "k_block = k[j : j + block_size]"),
        "`k_block = k[j:j + block_size]`",
    ),
    _m(
        "scores-of-all-keys",
        2,
        "How many columns does your S_ij have, and how many keys are in this block?",
        "你的 S_ij 有几列？这个块里有几个 key？",
        Text("S_ij: (rows, cols) of this tile only", "S_ij：只有当前块的 (rows, cols)"),
        _SCORES,
    ),
    # ---- TODO 3 ----
    _m(
        "max-tuple",
        3,
        "`torch.max(x, dim)` returns 2 things. Which of them do you want?",
        "`torch.max(x, dim)` 返回 2 个东西。你要的是哪一个？",
        Text("(values, indices) = max over a dim", "沿某一维求 max，得到 (values, indices)"),
        _BLOCK_MAX,
    ),
    _m(
        "argmax",
        3,
        "Your row maxima are whole numbers. Are they scores, or places?",
        "你的行最大值都是整数。它们是分数，还是位置？",
        Text("m_block = rowmax S, a score", "m_block = rowmax S，是分数"),
        _BLOCK_MAX,
    ),
    _m(
        "builtin-max",
        3,
        "Python's `max` asks: is a larger than b, yes or no? Can a tensor answer that?",
        "Python 的 `max` 会问：a 比 b 大吗，是还是否？一个张量答得上来吗？",
        Text(
            "m_new[r] = max(m_i[r], m_block[r]) for each row r",
            "对每一行 r：m_new[r] = max(m_i[r], m_block[r])",
        ),
        _NEW_MAX,
    ),
    _m(
        "max-of-the-whole-tile",
        3,
        "Is your maximum the same in all rows? Each row has its own softmax.",
        "你的最大值是不是每一行都一样？每一行各有自己的 softmax。",
        Text("m_block[r] = max over c of S[r, c]", "m_block[r] = max_c S[r, c]"),
        _BLOCK_MAX,
    ),
    _m(
        "max-over-rows",
        3,
        "Did you take the maximum over the queries or over the keys?",
        "你是沿 query 求的最大值，还是沿 key？",
        Text("m_block[r] = max over c of S[r, c]", "m_block[r] = max_c S[r, c]"),
        _BLOCK_MAX,
    ),
    _m(
        "max-keepdim-lost",
        3,
        "What shape is your m_block, and what does (rows, cols) minus that subtract from what?",
        "你的 m_block 是什么形状？(rows, cols) 减去它时，是谁减谁？",
        Text("m_block: (rows, 1), not (rows,)", "m_block：(rows, 1)，不是 (rows,)"),
        _BLOCK_MAX,
    ),
    _m(
        "max-of-absolute-values",
        3,
        "Is the largest score the same as the largest distance from 0?",
        "最大的分数，就是离 0 最远的那个分数吗？",
        Text("m_block = rowmax S", "m_block = rowmax S"),
        _BLOCK_MAX,
    ),
    _m(
        "min-instead-of-max",
        3,
        "After subtracting your number, can exp still be larger than 1?",
        "减去你的这个数之后，exp 还会大于 1 吗？",
        _M,
        _NEW_MAX,
    ),
    _m(
        "mean-instead-of-max",
        3,
        "After subtracting the mean, can exp still be larger than 1?",
        "减去平均值之后，exp 还会大于 1 吗？",
        _M,
        _BLOCK_MAX,
    ),
    _m(
        "max-forgets-the-past",
        3,
        "Your m_new goes down here. Can a maximum over more numbers become smaller?",
        "你的 m_new 在这里变小了。数变多了，最大值会变小吗？",
        _M,
        _NEW_MAX,
    ),
    _m(
        "max-never-moves",
        3,
        "Did this tile's maximum have any effect on your m_new?",
        "这个块的最大值，对你的 m_new 有影响吗？",
        _M,
        _NEW_MAX,
    ),
    _m(
        "max-added",
        3,
        "Two maxima meet. Does their sum, or the larger one, bound all scores?",
        "两个最大值相遇。能作为全部分数上界的，是它们的和，还是较大的那个？",
        _M,
        _NEW_MAX,
    ),
    # ---- TODO 4 ----
    _m(
        "nothing-subtracted",
        4,
        "Some of your weights are above 1. What becomes of exp(100) in float32?",
        "你有些权重大于 1。在 float32 里 exp(100) 会变成什么？",
        _P,
        _WEIGHTS,
    ),
    _m(
        "old-maximum-subtracted",
        4,
        "What is m_i at the first tile? And score minus that?",
        "在第一个块里，m_i 是多少？分数减去它呢？",
        _P,
        _WEIGHTS,
    ),
    _m(
        "block-maximum-subtracted",
        4,
        "The largest weight of a row is 1 in every tile. What are the older tiles relative to?",
        "每个块里，每行最大的权重都是 1。那前面的块是以谁为基准的？",
        _P,
        _WEIGHTS,
    ),
    _m(
        "exponent-sign",
        4,
        "Is the exponent of the largest score 0, and all the others below 0? Yours are above.",
        "最大分数的指数应为 0，其余都小于 0。你的是不是反过来了？",
        _P,
        _WEIGHTS,
    ),
    _m(
        "exp-forgotten",
        4,
        "Your weights are 0 or negative. Which function makes them positive?",
        "你的权重是 0 或负数。哪个函数会把它们变成正数？",
        _P,
        _WEIGHTS,
    ),
    _m(
        "softmax-in-the-tile",
        4,
        "Each row of your P_ij sums to 1 in every tile. Can a tile know the sum over all keys?",
        "每个块里 P_ij 的每一行之和都是 1。一个块能知道所有 key 的总和吗？",
        _P,
        _WEIGHTS,
    ),
    _m(
        "exp-before-the-subtraction",
        4,
        "You subtract after exp. What must be small: the exponent, or its result?",
        "你是在 exp 之后才减的。要变小的是指数，还是 exp 的结果？",
        _P,
        _WEIGHTS,
    ),
    _m(
        "base-two",
        4,
        "2 to the x is not e to the x. By what must x be multiplied first?",
        "2 的 x 次方不是 e 的 x 次方。x 要先乘上多少？",
        Text("exp(x) = 2^(x · log2 e)", "exp(x) = 2^(x · log2 e)"),
        _WEIGHTS,
    ),
    # ---- TODO 5 ----
    _m(
        "sum-of-the-whole-tile",
        5,
        "Is your sum the same in all rows? Each row has its own denominator.",
        "你的指数和是不是每一行都一样？每一行各有自己的分母。",
        Text("l_block[r] = Σ over c of P[r, c]", "l_block[r] = Σ_c P[r, c]"),
        _BLOCK_SUM,
    ),
    _m(
        "sum-over-rows",
        5,
        "Did you sum over the queries or over the keys?",
        "你是沿 query 求和，还是沿 key？",
        Text("l_block[r] = Σ over c of P[r, c]", "l_block[r] = Σ_c P[r, c]"),
        _BLOCK_SUM,
    ),
    _m(
        "sum-keepdim-lost",
        5,
        "What shape is your l_block? What does (rows, 1) + (rows,) give?",
        "你的 l_block 是什么形状？(rows, 1) + (rows,) 会得到什么？",
        Text("l_block: (rows, 1), not (rows,)", "l_block：(rows, 1)，不是 (rows,)"),
        _BLOCK_SUM,
    ),
    _m(
        "mean-instead-of-sum",
        5,
        "Does a denominator grow with every key, or stay an average?",
        "分母会随着每个 key 变大，还是一直是平均值？",
        Text("l_block[r] = Σ over c of P[r, c]", "l_block[r] = Σ_c P[r, c]"),
        _BLOCK_SUM,
    ),
    _m(
        "max-instead-of-sum",
        5,
        "A softmax divides by a sum. What did you take of the row?",
        "softmax 除以的是和。你对这一行取的是什么？",
        Text("l_block[r] = Σ over c of P[r, c]", "l_block[r] = Σ_c P[r, c]"),
        _BLOCK_SUM,
    ),
    _m(
        "sum-of-scores",
        5,
        "Is the denominator a sum of scores, or of their exponentials?",
        "分母是分数的和，还是它们的指数的和？",
        Text("l_block[r] = Σ over c of P[r, c]", "l_block[r] = Σ_c P[r, c]"),
        _BLOCK_SUM,
    ),
    _m(
        "block-sum-corrected-twice",
        5,
        "P_ij is relative to m_new already. What is left for exp(m_block − m_new) to correct?",
        "P_ij 已经以 m_new 为基准了。exp(m_block − m_new) 还要修正什么？",
        _L,
        _NEW_SUM,
    ),
    _m(
        "old-sum-not-rescaled",
        5,
        "The old sum was made with the old maximum. What happens to it when the maximum grows?",
        "旧的指数和是以旧的最大值为基准的。最大值变大时，它该怎么变？",
        _L,
        _NEW_SUM,
    ),
    _m(
        "state-overwritten-too-early",
        5,
        "When you compute exp(m_i − m_new), is m_i still the old maximum?",
        "计算 exp(m_i − m_new) 时，m_i 还是旧的最大值吗？",
        Text(
            "First α = exp(m_old − m_new), then m_i = m_new. A slice is a view: writes show in it.",
            "先算 α = exp(m_old − m_new)，再令 m_i = m_new。切片是视图：一写回，它也跟着变。",
        ),
        "`alpha = torch.exp(m_i - m_new)`",
    ),
    _m(
        "alpha-inverted",
        5,
        "m_new is at least m_i. Can a correction of the old sum be above 1?",
        "m_new 不会小于 m_i。对旧指数和的修正因子会大于 1 吗？",
        Text("α = exp(m_old − m_new) ≤ 1", "α = exp(m_old − m_new) ≤ 1"),
        _NEW_SUM,
    ),
    _m(
        "alpha-on-the-new-sum",
        5,
        "Which of the two sums is still relative to the old maximum?",
        "两个和里，哪一个还是以旧的最大值为基准的？",
        _L,
        _NEW_SUM,
    ),
    _m(
        "alpha-on-both-sums",
        5,
        "Both sums shrink by α in your line. Is l_block relative to the old maximum?",
        "你这一行里，两个和都乘了 α。l_block 是以旧的最大值为基准的吗？",
        _L,
        _NEW_SUM,
    ),
    _m(
        "old-sum-forgotten",
        5,
        "Where do the keys of the earlier tiles appear in your l_new?",
        "前面那些块的 key，在你的 l_new 里出现在哪里？",
        _L,
        _NEW_SUM,
    ),
    _m(
        "new-sum-forgotten",
        5,
        "Where do the keys of this tile appear in your l_new?",
        "当前块的 key，在你的 l_new 里出现在哪里？",
        _L,
        _NEW_SUM,
    ),
    _m(
        "alpha-without-exp",
        5,
        "A maximum that moves by x changes e to the −m by a factor. Which one?",
        "最大值移动了 x，e 的 −m 次方会变化多少倍？",
        _L,
        _NEW_SUM,
    ),
    _m(
        "alpha-of-the-block-maximum",
        5,
        "The new sum is relative to m_new. Why does m_block stand in your factor?",
        "新的指数和以 m_new 为基准。为什么你的因子里是 m_block？",
        _L,
        _NEW_SUM,
    ),
    # ---- TODO 6 ----
    _m(
        "output-not-rescaled",
        6,
        "The old sum moves with the maximum in your code. Does the old output move with it?",
        "最大值变化时，你的旧指数和会跟着缩放。旧的输出也跟着了吗？",
        _O,
        _OUTPUT,
    ),
    _m(
        "output-alpha-inverted",
        6,
        "m_new is at least m_i. Can the factor on the old output be above 1?",
        "m_new 不会小于 m_i。旧输出前的因子会大于 1 吗？",
        Text("α = exp(m_old − m_new) ≤ 1", "α = exp(m_old − m_new) ≤ 1"),
        _OUTPUT,
    ),
    _m(
        "alpha-on-the-new-output",
        6,
        "α is 0 at the first tile. What is left of P_ij @ v_block there?",
        "第一个块里 α 是 0。P_ij @ v_block 还剩下什么？",
        _O,
        _OUTPUT,
    ),
    _m(
        "alpha-on-both-outputs",
        6,
        "α is 0 at the first tile. What is left of P_ij @ v_block there?",
        "第一个块里 α 是 0。P_ij @ v_block 还剩下什么？",
        _O,
        _OUTPUT,
    ),
    _m(
        "old-output-not-multiplied-by-sum",
        6,
        "The old output was divided by l_i. What undoes that before you divide by l_new?",
        "旧的输出已经除过 l_i。除以 l_new 之前，要怎样把它还原？",
        _O,
        _OUTPUT,
    ),
    _m(
        "only-the-new-term-divided",
        6,
        "Which terms does your division by l_new reach? Check the brackets.",
        "你的除以 l_new 作用到了哪些项？检查一下括号。",
        _O,
        _OUTPUT,
    ),
    _m(
        "old-output-not-reweighted",
        6,
        "Of the new average, the old output makes up α·l_old / l_new. How much does it in yours?",
        "在新的平均里，旧的输出所占的权重是 α·l_old / l_new。在你的式子里它占多少？",
        _O,
        _OUTPUT,
    ),
    _m(
        "only-the-old-term-divided",
        6,
        "Which terms does your division by l_new reach? Check the brackets.",
        "你的除以 l_new 作用到了哪些项？检查一下括号。",
        _O,
        _OUTPUT,
    ),
    _m(
        "divided-by-the-old-sum",
        6,
        "The output now holds this tile too. Does your denominator?",
        "输出里已经包含当前块了。你的分母包含了吗？",
        _O,
        _OUTPUT,
    ),
    _m(
        "divided-by-the-block-sum",
        6,
        "The output holds all tiles so far. Which sum does too: l_block or l_new?",
        "输出包含到目前为止的所有块。哪个和也是这样：l_block 还是 l_new？",
        _O,
        _OUTPUT,
    ),
    _m(
        "softmax-per-tile-summed",
        6,
        "With v all ones the answer should be 1. What do your tiles add up to?",
        "如果 v 全是 1，结果应该是 1。你的各个块加起来是多少？",
        Text("One denominator for all tiles: Σ P V / Σ l", "所有块共用一个分母：Σ P V / Σ l"),
        _OUTPUT,
    ),
    _m(
        "new-output-not-corrected",
        6,
        "You corrected l_block by exp(m_block − m_new). Does P_ij @ v_block need it as well?",
        "你用 exp(m_block − m_new) 修正了 l_block。P_ij @ v_block 也需要吗？",
        Text(
            "One base for both: either P = exp(S − m_new), or β on the sum and on P V",
            "两者用同一个基准：要么 P = exp(S − m_new)，要么指数和与 P V 都乘 β",
        ),
        _WEIGHTS,
    ),
    _m(
        "old-output-forgotten",
        6,
        "Where do the values of the earlier tiles appear in your out_i?",
        "前面那些块的 value，在你的 out_i 里出现在哪里？",
        _O,
        _OUTPUT,
    ),
    _m(
        "new-output-forgotten",
        6,
        "Does P_ij @ v_block reach out_i? A line that begins with + is a line of its own.",
        "P_ij @ v_block 真的进到 out_i 里了吗？以 + 开头的一行是独立的一行。",
        Text("Put brackets around what spans two lines.", "跨两行的式子要用括号括起来。"),
        _OUTPUT,
    ),
    _m(
        "never-divided",
        6,
        "Your out_i is l_new times too large. Where should it be divided?",
        "你的 out_i 大了 l_new 倍。应该在哪里除？",
        _O,
        _OUTPUT,
    ),
    _m(
        "values-of-another-block",
        6,
        "The weights belong to the keys of this tile. Do the values?",
        "权重属于当前块的 key。value 也是当前块的吗？",
        Text("v_block = v[j : j + block_size]", "v_block = v[j : j + block_size]"),
        "`v_block = v[j:j + block_size]`",
    ),
    _m(
        "weights-transposed",
        6,
        "Rows of P_ij are queries, and so are the rows of out_i. What did the transpose change?",
        "P_ij 的行是 query，out_i 的行也是。转置之后变成了什么？",
        _O,
        _OUTPUT,
    ),
    _m(
        "output-of-early-state",
        6,
        "When out_i is computed, are m_i and l_i still the old ones?",
        "计算 out_i 时，m_i 和 l_i 还是旧的吗？",
        Text(
            "First out_i, then m_i = m_new and l_i = l_new. A slice is a view: writes show in it.",
            "先算 out_i，再令 m_i = m_new，l_i = l_new。切片是视图：一写回，它也跟着变。",
        ),
        _OUTPUT,
    ),
    _m(
        "maximum-not-carried",
        6,
        "Which maximum does the next tile start from?",
        "下一个块是从哪个最大值开始的？",
        Text("the next tile's m_old = this tile's m_new", "下一个块的 m_old = 这个块的 m_new"),
        "`m_i = m_new`",
    ),
    _m(
        "sum-not-carried",
        6,
        "Which sum does the next tile start from?",
        "下一个块是从哪个指数和开始的？",
        Text("the next tile's l_old = this tile's l_new", "下一个块的 l_old = 这个块的 l_new"),
        "`l_i = l_new`",
    ),
    _m(
        "block-state-carried",
        6,
        "The next tile must know all earlier ones. Does this value?",
        "下一个块必须知道前面所有的块。这个值知道吗？",
        Text("m_i = m_new and l_i = l_new", "m_i = m_new，l_i = l_new"),
        "`m_i = m_new`",
    ),
    _m(
        "state-starts-again",
        6,
        "This tile starts from nothing, as the first one does. What became of the tiles before it?",
        "这个块又从头开始，和第一个块一样。前面那些块算出的结果到哪里去了？",
        Text(
            "What a tile ends with, the next tile of the same rows starts from.",
            "同样这几行里，上一个块结束时的值，就是下一个块开始时的值。",
        ),
        Text(
            "m_i = −∞, l_i = 0, out_i = 0: once for each block of rows, not once for each tile.",
            "m_i = −∞，l_i = 0，out_i = 0：每个行块只设一次，不是每个块都设一次。",
        ),
    ),
    _m(
        "no-write-back",
        6,
        "out_i is right at the end of the loop. Who puts it into out?",
        "循环结束时 out_i 是对的。谁把它写进 out？",
        Text("out[rows of block i] = out_i", "out[第 i 块的行] = out_i"),
        "`out[i:i + block_size] = out_i`",
    ),
    _m(
        "final-division-missing",
        6,
        "You keep out_i undivided, which is fine. Where is it divided at last?",
        "你让 out_i 一直不除，这没问题。最后在哪里除？",
        Text("O = out_i / l_i, once, after the last tile", "O = out_i / l_i，最后一个块之后除一次"),
        "`out[i:i + block_size] = out_i / l_i`",
    ),
    _m(
        "divided-twice",
        6,
        "out_i is normalised after every tile. What does the last division do to it?",
        "每个块之后 out_i 都已归一化。最后再除一次，会怎样？",
        Text(
            "Normalise in each tile or at the end, not both", "每块归一化，或者最后归一化，只选一个"
        ),
        "`out[i:i + block_size] = out_i`",
    ),
    # ---- the whole ----
    _m(
        "tiles-missing",
        0,
        "Which tiles did your loops visit, and what made them stop there?",
        "你的循环走到了哪些块？为什么停在了那里？",
        Text(
            "i and j run from 0 to the end in steps of block_size. The last block may be shorter. "
            "`return` comes after both loops.",
            "i 和 j 从 0 走到末尾，步长是 block_size。末块可以短一些。`return` 在两层循环之后。",
        ),
        "`for j in range(0, k.shape[0], block_size):`",
    ),
    _m(
        "tiles-overlap",
        0,
        "How far does your loop variable move from one pass to the next? How long is a block?",
        "循环变量每次走多远？一个块有多长？",
        Text(
            "i and j run from 0 to the end in steps of block_size: every key counts once.",
            "i 和 j 从 0 走到末尾，步长是 block_size：每个 key 只算一次。",
        ),
        "`for j in range(0, k.shape[0], block_size):`",
    ),
    _m(
        "everything-at-once",
        0,
        "How large is your largest tensor if there are 100,000 keys?",
        "如果有 100000 个 key，你最大的张量有多大？",
        Text("Only one tile of S exists at a time", "任何时候只有 S 的一个块"),
        _SCORES,
    ),
    _m(
        "maximum-of-all-keys",
        0,
        "When your code computes the first exponential of a row, has it seen the row's last key?",
        "你的代码计算一行的第一个指数时，是不是已经看过这一行的最后一个 key？",
        _M,
        _NEW_MAX,
    ),
    _m(
        "block-size-ignored",
        0,
        "What changes in your run when block_size changes?",
        "block_size 变了，你的运行有什么变化？",
        Text(
            "block_size rows and block_size keys per tile", "每块 block_size 行、block_size 个 key"
        ),
        "`for j in range(0, k.shape[0], block_size):`",
    ),
    _m(
        "inputs-changed",
        0,
        "A slice is a view. Whose memory do you write to?",
        "切片是视图。你写的是谁的内存？",
        Text(
            "q_block = q[…] * scale makes a new tensor; *= does not",
            "q_block = q[…] * scale 会新建张量，*= 不会",
        ),
        "`q_block = q[i:i + block_size] * scale`",
    ),
    _m(
        "returns-more-than-the-output",
        0,
        "Who calls this function, and what does it do with a tuple?",
        "谁会调用这个函数？它拿到元组能做什么？",
        Text("Return out alone", "只返回 out"),
        "`return out`",
    ),
)

BY_ID = {entry.id: entry for entry in TABLE}

# Where an exception or a wrong shape stands in the way of the numbers.
SHAPES = Text(
    "What shape is each thing on the right of this line's `=`? Compare with the table of names.",
    "这一行等号右边，每个量是什么形状？和题目里的变量表对一对。",
)

# For a relation that fails without a known cause: the question and the formula, no line.
GENERIC = {
    1: (
        Text(
            "What do O, m and l have to be before any key was seen?",
            "还没看到任何 key 时，O、m、l 应该是什么？",
        ),
        Text("O = 0, m = −∞, l = 0", "O = 0，m = −∞，l = 0"),
    ),
    2: (
        Text(
            "Compute one score by hand: one query row times one key row.",
            "手算一个分数：一行 query 乘一行 key。",
        ),
        _S,
    ),
    3: (
        Text(
            "Take one row: what is the largest score it has met so far?",
            "看其中一行：到目前为止它遇到的最大分数是多少？",
        ),
        _M,
    ),
    4: (
        Text(
            "Take the largest score of a row: what must its weight be?",
            "看一行里最大的分数：它的权重应该是多少？",
        ),
        _P,
    ),
    5: (
        Text(
            "Which part of the sum is relative to the old maximum?",
            "指数和里，哪一部分还是以旧的最大值为基准的？",
        ),
        _L,
    ),
    6: (
        Text(
            "If v were all ones, what should out_i be after every tile?",
            "如果 v 全是 1，每个块之后 out_i 应该是多少？",
        ),
        _O,
    ),
}

# The same for what TODO 6 sets after out_i.
GENERIC_LAST = {
    "m_i": (
        Text("Which maximum must the next tile start from?", "下一个块应该从哪个最大值开始？"),
        Text("m_i = m_new", "m_i = m_new"),
    ),
    "l_i": (
        Text("Which sum must the next tile start from?", "下一个块应该从哪个指数和开始？"),
        Text("l_i = l_new", "l_i = l_new"),
    ),
    "out": (
        Text(
            "Which rows does your line write into `out`, what does it write, and how often is it "
            "run?",
            "你的那一行写的是 `out` 的哪些行？写进去的是什么？它运行了几次？",
        ),
        Text(
            "out[rows of block i] = O of these rows, once for each block of rows",
            "out[第 i 块的行] = 这些行的 O，每个行块写一次",
        ),
    ),
}
