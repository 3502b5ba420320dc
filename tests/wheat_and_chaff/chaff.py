"""Wrong answers to `flash_attention_forward_sim`, each a small edit of a right one.

To add one, add a line: a name, the edits, the TODO that must be named first (None: it is not a
TODO's fault), the misconception (None: the finding must not name any), and the marks it deserves.
`~` in an edit stands for twelve spaces, the indentation inside the inner loop.
"""

# One answer a line, however long the line.
# ruff: noqa: E501
# fmt: off
from __future__ import annotations

from dataclasses import dataclass, field

SKELETON = '''import math
import torch


def flash_attention_forward_sim(q, k, v, block_size=2):
    seq_len, dim = q.shape
    out = torch.zeros((seq_len, v.shape[-1]), dtype=q.dtype, device=q.device)
    m = torch.full((seq_len, 1), -math.inf, dtype=q.dtype, device=q.device)
    l = torch.zeros((seq_len, 1), dtype=q.dtype, device=q.device)
    scale = 1.0 / math.sqrt(dim)
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] * scale
        m_i = m[i : i + block_size]
        l_i = l[i : i + block_size]
        out_i = out[i : i + block_size]
        for j in range(0, k.shape[0], block_size):
            k_block = k[j : j + block_size]
            v_block = v[j : j + block_size]
            S_ij = q_block @ k_block.transpose(-2, -1)
            m_block = S_ij.max(dim=-1, keepdim=True).values
            m_new = torch.maximum(m_i, m_block)
            P_ij = torch.exp(S_ij - m_new)
            l_block = P_ij.sum(dim=-1, keepdim=True)
            l_new = torch.exp(m_i - m_new) * l_i + l_block
            out_i = (torch.exp(m_i - m_new) * l_i * out_i + P_ij @ v_block) / l_new
            m_i = m_new
            l_i = l_new
        out[i : i + block_size] = out_i
        m[i : i + block_size] = m_i
        l[i : i + block_size] = l_i
    return out
'''

S = "q_block @ k_block.transpose(-2, -1)"
MB = "S_ij.max(dim=-1, keepdim=True).values"
MN = "torch.maximum(m_i, m_block)"
P = "torch.exp(S_ij - m_new)"
LB = "P_ij.sum(dim=-1, keepdim=True)"
LN = "l_new = torch.exp(m_i - m_new) * l_i + l_block"
O = "out_i = (torch.exp(m_i - m_new) * l_i * out_i + P_ij @ v_block) / l_new"
BACK = "        out[i : i + block_size] = out_i\n"
M0 = "m = torch.full((seq_len, 1), -math.inf, dtype=q.dtype, device=q.device)"
L0 = "l = torch.zeros((seq_len, 1), dtype=q.dtype, device=q.device)"
O0 = "out = torch.zeros((seq_len, v.shape[-1]), dtype=q.dtype, device=q.device)"
STATE = "            m_i = m_new\n            l_i = l_new\n"
INNER = "for j in range(0, k.shape[0], block_size)"
OUTER = "for i in range(0, seq_len, block_size)"
# The same function with the division at the end.
DEFERRED = ((O, "out_i = torch.exp(m_i - m_new) * out_i + P_ij @ v_block"), ("] = out_i\n", "] = out_i / l_i\n"))


@dataclass(frozen=True)
class Chaff:
    """status: None stands for 'wrong'."""

    name: str
    edits: tuple[tuple[str, str], ...]
    todo: int | None
    misconception: str | None
    marks: float
    status: str = "wrong"
    source: str = field(init=False)

    def __post_init__(self) -> None:
        source = SKELETON
        for old, new in self.edits:
            assert old in source, f"{self.name}: {old!r} is not there"
            source = source.replace(old, new.replace("~", "            "))
        object.__setattr__(self, "source", source)


def _c(name, *rest, status="wrong"):
    *edits, todo, misconception, marks = rest
    return Chaff(name, tuple(edits), todo, misconception, marks, status)


CHAFF = (
    # ---- TODO 1 ----
    _c("m starts at 0", (M0, M0.replace("-math.inf", "0.0")), 1, "m-starts-at-zero", 90),
    _c("m starts as zeros", (M0, M0.replace("full((seq_len, 1), -math.inf", "zeros((seq_len, 1)")), 1, "m-starts-at-zero", 90),
    _c("m starts at -1", (M0, M0.replace("-math.inf", "-1.0")), 1, None, 90),
    _c("m starts at +inf", (M0, M0.replace("-math.inf", "math.inf")), 1, "m-starts-at-plus-infinity", 90),
    _c("state without dtype", (", dtype=q.dtype, device=q.device", ""), 1, "state-without-dtype", 90),
    _c("out without dtype", (O0, O0.replace(", dtype=q.dtype", "")), 1, "state-without-dtype", 90),
    _c("m and l without dtype", (M0, M0.replace(", dtype=q.dtype", "")), (L0, L0.replace(", dtype=q.dtype", "")), 1, "state-without-dtype", 90),
    _c("out in half precision", (O0, O0.replace("q.dtype", "torch.float16")), 1, None, 90),
    _c("m uninitialised", (M0, M0.replace("full((seq_len, 1), -math.inf", "empty((seq_len, 1)")), 1, "uninitialised-state", 90),
    _c("l uninitialised", (L0, L0.replace("zeros", "empty")), 1, "uninitialised-state", 90),
    _c("l starts at 1 with m at 0", (M0, M0.replace("-math.inf", "0.0")), (L0, L0.replace("zeros", "ones")), 1, "m-starts-at-zero", 90),
    _c("misspelt dtype", (L0, L0.replace("dtype", "dype")), 1, None, 90, status="crashed"),
    # ---- TODO 2 ----
    _c("no scale", ("* scale\n", "\n"), 2, "no-scale", 90),
    _c("scaled twice", (S, S + " * scale"), 2, "scale-twice", 90),
    _c("divided by d", ("1.0 / math.sqrt(dim)", "1.0 / dim"), 2, "scale-twice", 90),
    _c("scale inverted", ("1.0 / math.sqrt(dim)", "math.sqrt(dim)"), 2, "scale-inverted", 90),
    _c("scaled by the number of rows", ("1.0 / math.sqrt(dim)", "1.0 / math.sqrt(seq_len)"), 2, None, 90),
    _c("k times q", (S, "k_block @ q_block.T"), 2, "scores-transposed", 90),
    _c("k not transposed", (S, "q_block @ k_block"), 2, "key-not-transposed", 90, status="crashed"),
    _c("elementwise product", (S, "q_block * k_block"), 2, "elementwise-product", 90, status="crashed"),
    _c("causal mask", (S, S + "\n~S_ij = S_ij.masked_fill(torch.arange(j, j + len(k_block)) > torch.arange(i, i + len(q_block))[:, None], -1e30)"), 2, "causal-mask", 90),
    _c("keys of block i", ("k_block = k[j : j", "k_block = k[i : i"), 2, "scores-of-another-block", 90),
    _c("minus sign", (S, "-" + S), 2, None, 90),
    _c("absolute scores", (S, f"({S}).abs()"), 2, None, 90),
    _c("scale added", ("* scale\n", "+ scale\n"), 2, None, 90),
    # ---- TODO 3 ----
    _c("max with its indices", (MB, "torch.max(S_ij, dim=-1, keepdim=True)"), 3, "max-tuple", 90, status="crashed"),
    _c("indices of max", (MB, "torch.max(S_ij, dim=-1, keepdim=True)[1]"), 3, "argmax", 90),
    _c("argmax", (MB, "S_ij.argmax(dim=-1, keepdim=True)"), 3, "argmax", 90),
    _c("builtin max", (MN, "max(m_i, m_block)"), 3, "builtin-max", 90, status="crashed"),
    _c("max of the tile", (MB, "S_ij.max()"), 3, "max-of-the-whole-tile", 90),
    _c("max over rows", (MB, "S_ij.amax(dim=0, keepdim=True)"), 3, "max-over-rows", 90, status="crashed"),
    _c("max keepdim lost", (MB, "S_ij.max(dim=-1).values"), 3, "max-keepdim-lost", 90, status="crashed"),
    _c("max of absolute values", (MB, "S_ij.abs().amax(dim=-1, keepdim=True)"), 3, "max-of-absolute-values", 90),
    _c("min", (MB, "S_ij.amin(dim=-1, keepdim=True)"), 3, "min-instead-of-max", 90),
    _c("minimum", (MN, "torch.minimum(m_i, m_block)"), 3, "min-instead-of-max", 90),
    _c("mean", (MB, "S_ij.mean(dim=-1, keepdim=True)"), 3, "mean-instead-of-max", 90),
    _c("median", (MB, "S_ij.median(dim=-1, keepdim=True).values"), 3, None, 90),
    _c("m_new is m_block", (MN, "m_block"), 3, "max-forgets-the-past", 90),
    _c("m_new is m_i", (MN, "m_i"), 3, "max-never-moves", 90),
    _c("m_new is the sum", (MN, "m_i + m_block"), 3, "max-added", 90),
    _c("one dimension, not unsqueezed", (M0, M0.replace("(seq_len, 1)", "(seq_len,)")), (L0, L0.replace("(seq_len, 1)", "(seq_len,)")), (MB, "S_ij.amax(dim=-1)"), (LB, "P_ij.sum(dim=-1)"), 4, None, 80, status="crashed"),
    # ---- TODO 4 ----
    _c("nothing subtracted", (P, "torch.exp(S_ij)"), 4, "nothing-subtracted", 90),
    _c("old maximum subtracted", (P, "torch.exp(S_ij - m_i)"), 4, "old-maximum-subtracted", 90),
    _c("block maximum subtracted", (P, "torch.exp(S_ij - m_block)"), 4, "block-maximum-subtracted", 90),
    _c("sign of the exponent", (P, "torch.exp(m_new - S_ij)"), 4, "exponent-sign", 90),
    _c("maximum added", (P, "torch.exp(S_ij + m_new)"), 4, "exponent-sign", 90),
    _c("exp forgotten", (P, "S_ij - m_new"), 4, "exp-forgotten", 90),
    _c("exp, then minus", (P, "torch.exp(S_ij) - m_new"), 4, "exp-before-the-subtraction", 90),
    _c("softmax in the tile", (P, "torch.softmax(S_ij, dim=-1)"), 4, "softmax-in-the-tile", 90),
    _c("base two", (P, "2 ** (S_ij - m_new)"), 4, "base-two", 90),
    _c("base ten", (P, "10 ** (S_ij - m_new)"), 4, None, 90),
    _c("exp of the whole fraction", (P, "torch.exp(S_ij / m_new)"), 4, None, 90),
    _c("sigmoid", (P, "torch.sigmoid(S_ij - m_new)"), 4, None, 90),
    # ---- TODO 5 ----
    _c("sum of the tile", (LB, "P_ij.sum()"), 5, "sum-of-the-whole-tile", 90),
    _c("sum over rows", (LB, "P_ij.sum(dim=0, keepdim=True)[:, : 1] * torch.ones_like(m_i)"), 5, None, 90),
    _c("sum keepdim lost", (LB, "P_ij.sum(dim=-1)"), 5, "sum-keepdim-lost", 90, status="crashed"),
    _c("mean of the row", (LB, "P_ij.mean(dim=-1, keepdim=True)"), 5, "mean-instead-of-sum", 90),
    _c("max of the row", (LB, "P_ij.amax(dim=-1, keepdim=True)"), 5, "max-instead-of-sum", 90),
    _c("sum of scores", (LB, "S_ij.sum(dim=-1, keepdim=True)"), 5, "sum-of-scores", 90),
    _c("the origin's formula", (LN, LN.replace("l_block", "torch.exp(m_block - m_new) * l_block")), 5, "block-sum-corrected-twice", 90),
    _c("old sum not rescaled", (LN, "l_new = l_i + l_block"), 5, "old-sum-not-rescaled", 90),
    _c("alpha inverted", (LN, "l_new = torch.exp(m_new - m_i) * l_i + l_block"), 5, "alpha-inverted", 90),
    _c("alpha on the new sum", (LN, "l_new = l_i + torch.exp(m_i - m_new) * l_block"), 5, "alpha-on-the-new-sum", 90),
    _c("alpha on both sums", (LN, "l_new = torch.exp(m_i - m_new) * (l_i + l_block)"), 5, "alpha-on-both-sums", 90),
    _c("old sum forgotten", (LN, "l_new = l_block"), 5, "old-sum-forgotten", 90),
    _c("new sum forgotten", (LN, "l_new = torch.exp(m_i - m_new) * l_i"), 5, "new-sum-forgotten", 90),
    _c("alpha without exp", (LN, "l_new = (m_i - m_new) * l_i + l_block"), 5, "alpha-without-exp", 90),
    _c("alpha of the block's maximum", (LN, "l_new = torch.exp(m_i - m_block) * l_i + l_block"), 5, "alpha-of-the-block-maximum", 90),
    _c("m_i overwritten before alpha", (LN, "m_i = m_new\n~" + LN), 5, "state-overwritten-too-early", 90),
    _c("the sums multiplied", (LN, LN.replace("+ l_block", "* l_block")), 5, None, 90),
    _c("a wrong line for alpha", (LN, "alpha = torch.exp(m_block - m_new)\n~l_new = alpha * l_i + l_block"), (O, O.replace("torch.exp(m_i - m_new)", "alpha")), 5, None, 90),
    _c("m_i takes the block's before alpha", (P, "torch.exp(S_ij - m_new)\n~m_i = m_block"), 5, None, 90),
    _c("beta on O only", (P, "torch.exp(S_ij - m_block)"), (O, O.replace("P_ij @", "torch.exp(m_block - m_new) * P_ij @")), 5, None, 90),
    _c("out uninitialised but never read", (O0, O0.replace("zeros", "empty")), ("out_i = out[i : i + block_size]", "out_i = torch.zeros_like(q_block)"), (LN, "l_new = l_i + l_block"), 5, "old-sum-not-rescaled", 90),
    _c("minus instead of plus", (LN, LN.replace("+ l_block", "- l_block")), 5, None, 90),
    _c("a factor two", (LN, LN.replace("+ l_block", "+ 2 * l_block")), 5, None, 90),
    # ---- TODO 6 ----
    _c("O without alpha", (O, "out_i = (l_i * out_i + P_ij @ v_block) / l_new"), 6, "output-not-rescaled", 90),
    _c("O with alpha inverted", (O, O.replace("m_i - m_new", "m_new - m_i")), 6, "output-alpha-inverted", 90),
    _c("alpha on the new output", (O, "out_i = (l_i * out_i + torch.exp(m_i - m_new) * (P_ij @ v_block)) / l_new"), 6, "alpha-on-the-new-output", 90),
    _c("alpha on both outputs", (O, "out_i = torch.exp(m_i - m_new) * (l_i * out_i + P_ij @ v_block) / l_new"), 6, "alpha-on-both-outputs", 90),
    _c("old O without l_i", (O, O.replace("* l_i * out_i", "* out_i")), 6, "old-output-not-multiplied-by-sum", 90),
    _c("old O times the new sum", (O, O.replace("* l_i *", "* l_new *")), 6, "old-output-not-reweighted", 90),
    _c("only the new term divided", (O, "out_i = torch.exp(m_i - m_new) * l_i * out_i + P_ij @ v_block / l_new"), 6, "only-the-new-term-divided", 90),
    _c("only the old term divided", (O, "out_i = torch.exp(m_i - m_new) * l_i * out_i / l_new + P_ij @ v_block"), 6, "only-the-old-term-divided", 90),
    _c("divided by the block's sum", (O, O.replace("/ l_new", "/ l_block")), 6, "divided-by-the-block-sum", 90),
    _c("divided by the old sum", (O, O.replace("/ l_new", "/ (l_i + (l_i == 0))")), 6, None, 90),
    _c("softmax per tile, summed", (O, "out_i = out_i + (P_ij @ v_block) / l_block"), 6, "softmax-per-tile-summed", 90),
    _c("softmax per tile, averaged", (O, "out_i = out_i + (P_ij @ v_block) / l_block * block_size / len(k)"), 6, None, 90),
    _c("beta on l only", (P, "torch.exp(S_ij - m_block)"), (LN, LN.replace("l_block", "torch.exp(m_block - m_new) * l_block")), 6, "new-output-not-corrected", 90),
    _c("old output forgotten", (O, "out_i = P_ij @ v_block / l_new"), 6, "old-output-forgotten", 90),
    _c("a line that begins with +", (O, "out_i = torch.exp(m_i - m_new) * l_i * out_i / l_new\n~+ (P_ij @ v_block) / l_new"), 6, "new-output-forgotten", 90),
    _c("never divided", (O, "out_i = torch.exp(m_i - m_new) * l_i * out_i + P_ij @ v_block"), 6, "never-divided", 90),
    _c("values of block i", ("v_block = v[j : j", "v_block = v[i : i"), 6, "values-of-another-block", 90),
    _c("weights transposed", (O, O.replace("P_ij @", "P_ij.T[: len(q_block)] @ v_block[: len(q_block)] if P_ij.shape[0] == P_ij.shape[1] else P_ij @")), 6, None, 90),
    _c("v transposed", (O, O.replace("v_block", "v_block.T")), 6, None, 90, status="crashed"),
    _c("state written before O", (O + "\n" + STATE, "m_i = m_new\n~l_i = l_new\n~" + O + "\n"), 6, "output-of-early-state", 90),
    _c("m_i written before O", (O, "m_i = m_new\n~" + O), 6, "output-of-early-state", 90),
    _c("l_i written before O", (O, "l_i = l_new\n~" + O), 6, "output-of-early-state", 90),
    _c("m_i takes the output", ("m_i = m_new", "m_i = out_i"), 6, None, 90, status="crashed"),
    _c("m_i and l_i take the wrong ones at once", (STATE, "~m_i, l_i = out_i, l_new\n"), 6, None, 50, status="crashed"),
    _c("m_i starts again in every tile", ("            k_block =", "~m_i = torch.full_like(m_i, -math.inf)\n~k_block ="), 6, "state-starts-again", 90),
    _c("out_i starts again in every tile", ("            k_block =", "~out_i = torch.zeros_like(out_i)\n~k_block ="), 6, "state-starts-again", 90),
    _c("state loaded in every tile", ("            k_block =", "~m_i, l_i, out_i = (x[i : i + block_size] for x in (m, l, out))\n~k_block ="), 6, "state-starts-again", 90),
    _c("m_i not updated", ("            m_i = m_new\n", ""), 6, "maximum-not-carried", 90),
    _c("l_i not updated", ("            l_i = l_new\n", ""), 6, "sum-not-carried", 90),
    _c("m_i takes the block's", ("m_i = m_new", "m_i = m_block"), 6, "block-state-carried", 90),
    _c("l_i takes the block's", ("l_i = l_new", "l_i = l_block"), 6, "block-state-carried", 90),
    _c("state swapped", (STATE, "            m_i = l_new\n            l_i = m_new\n"), 6, None, 90),
    _c("no write-back", (BACK, ""), 6, "no-write-back", 90),
    _c("adds instead of writing back", (BACK, BACK.replace("] = out_i", "] += out_i * 2")), 6, None, 90),
    _c("writes back to the wrong rows", (BACK, "        out[j : j + block_size] = out_i\n"), 6, None, 90, status="wrong"),
    _c("final division missing", DEFERRED[0], 6, "final-division-missing", 90),
    _c("divided twice", DEFERRED[1], 6, "divided-twice", 90),
    _c("deferred, O without alpha", (O, "out_i = out_i + P_ij @ v_block"), DEFERRED[1], 6, "output-not-rescaled", 90),
    _c("deferred, alpha inverted", (O, "out_i = torch.exp(m_new - m_i) * out_i + P_ij @ v_block"), DEFERRED[1], 6, "output-alpha-inverted", 90),
    _c("deferred, only the new term divided", (O, "out_i = torch.exp(m_i - m_new) * out_i + P_ij @ v_block / l_new"), 6, "old-output-not-reweighted", 90),
    _c("deferred, old sum not rescaled", *DEFERRED, (LN, "l_new = l_i + l_block"), 5, "old-sum-not-rescaled", 90),
    _c("deferred, no scale", *DEFERRED, ("* scale\n", "\n"), 2, "no-scale", 90),
    _c("deferred, divided by m", DEFERRED[0], ("] = out_i\n", "] = out_i / m_i\n"), 6, None, 90),
    # ---- the whole, the tiles, the stability ----
    _c("returns inside the outer loop", ("    return out", "        return out"), None, "tiles-missing", 85),
    _c("returns inside the inner loop", ("            l_i = l_new\n", "            l_i = l_new\n            out[i : i + block_size] = out_i\n            return out\n"), None, "tiles-missing", 85),
    _c("tiles above the diagonal skipped", ("            k_block =", "~if j > i:\n~    continue\n~k_block ="), None, "tiles-missing", 85),
    _c("every key begins a tile", (INNER, "for j in range(0, k.shape[0])"), None, "tiles-overlap", 85),
    _c("one key block too few", (INNER, "for j in range(0, k.shape[0] - block_size, block_size)"), None, "tiles-missing", 85),
    _c("only the tiles up to the diagonal", (INNER, "for j in range(0, i + block_size, block_size)"), None, "tiles-missing", 85),
    _c("last block dropped", (INNER, "for j in range(0, k.shape[0] // block_size * block_size, block_size)"), None, "tiles-missing", 95),
    _c("last rows dropped", (OUTER, "for i in range(0, seq_len // block_size * block_size, block_size)"), None, "tiles-missing", 95),
    _c("returns a tuple", ("return out", "return out, m, l"), None, "returns-more-than-the-output", 95),
    _c("never more than 128 keys", (INNER, "for j in range(0, min(128, k.shape[0]), block_size)"), None, None, 90),
    _c("through NumPy, which has no bfloat16", ("return out", "return torch.from_numpy(out.numpy())"), None, None, 90, status="crashed"),
    _c("returns a NumPy array", ("return out", "return out.numpy()"), None, None, 95),
    _c("returns a list", ("return out", "return out.tolist()"), None, None, 95),
    _c("returns l", ("return out", "return l"), None, None, 85),
    _c("changes q", ("q_block = q[i : i + block_size] * scale", "q_block = q[i : i + block_size]\n        q_block *= scale"), None, "inputs-changed", 95),
    _c("torch's own attention", ("    seq_len, dim = q.shape\n", "    return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]\n    seq_len, dim = q.shape\n"), None, "everything-at-once", 30),
    _c("a fixed block size", ("    seq_len, dim = q.shape\n", "    seq_len, dim = q.shape\n    block_size = 2\n"), None, "block-size-ignored", 90),
    _c("one block of everything", ("    seq_len, dim = q.shape\n", "    seq_len, dim = q.shape\n    block_size = seq_len\n"), None, "everything-at-once", 90),
    _c("the full score matrix, then its tiles", ("    for i in", "    full = q @ k.T * scale\n    for i in"), (S, "full[i : i + block_size, j : j + block_size]"), None, "everything-at-once", 90),
    _c("a strip of scores over all keys", ("        for j in", "        strip = q_block @ k.T\n        for j in"), (S, "strip[:, j : j + block_size]"), None, "everything-at-once", 90),
    # ---- two mistakes ----
    _c("no scale and O without alpha", ("* scale\n", "\n"), (O, "out_i = (l_i * out_i + P_ij @ v_block) / l_new"), 2, "no-scale", 80),
    _c("max of the tile and old sum not rescaled", (MB, "S_ij.max()"), (LN, "l_new = l_i + l_block"), 3, "max-of-the-whole-tile", 80),
    _c("exp(S) and the origin's formula", (P, "torch.exp(S_ij)"), (LN, LN.replace("l_block", "torch.exp(m_block - m_new) * l_block")), 4, "nothing-subtracted", 80),
    _c("m starts at 0 and no write-back", (M0, M0.replace("-math.inf", "0.0")), (BACK, ""), 1, "m-starts-at-zero", 80),
    _c("k not transposed and sum keepdim lost", (S, "q_block @ k_block"), (LB, "P_ij.sum(dim=-1)"), 2, "key-not-transposed", 80, status="crashed"),
    _c("builtin max and O without alpha", (MN, "max(m_i, m_block)"), (O, "out_i = (l_i * out_i + P_ij @ v_block) / l_new"), 3, "builtin-max", 80, status="crashed"),
    _c("scaled twice and a tuple", (S, S + " * scale"), ("return out", "return out, l"), 2, "scale-twice", 85),
    _c("old sum not rescaled and last block dropped", (LN, "l_new = l_i + l_block"), (INNER, "for j in range(0, k.shape[0] // block_size * block_size, block_size)"), 5, "old-sum-not-rescaled", 85),
    _c("state without dtype and no scale", (", dtype=q.dtype, device=q.device", ""), ("* scale\n", "\n"), 1, "state-without-dtype", 80),
    _c("nothing subtracted, nothing rescaled", (P, "torch.exp(S_ij)"), (LN, "l_new = l_i + l_block"), (O, "out_i = (l_i * out_i + P_ij @ v_block) / l_new"), 4, "nothing-subtracted", 70),
    _c("four mistakes", ("* scale\n", "\n"), (MB, "S_ij.max()"), (P, "torch.exp(S_ij)"), (LN, "l_new = l_i + l_block"), 2, "no-scale", 60),
    # ---- unfinished ----
    _c("nothing done", (f"    {O0}\n    {M0}\n    {L0}\n", "    raise NotImplementedError\n"), 1, None, 0, status="unfinished"),
    _c("TODO 1 only", (f"~S_ij = {S}\n~m_block = {MB}\n~m_new = {MN}\n~P_ij = {P}\n~l_block = {LB}\n~{LN}\n~{O}\n{STATE}".replace("~", " " * 12), ""), ("        out[i : i + block_size] = out_i\n        m[i : i + block_size] = m_i\n        l[i : i + block_size] = l_i\n", ""), 2, None, 10, status="unfinished"),
    _c("up to TODO 3", (f"~P_ij = {P}\n~l_block = {LB}\n~{LN}\n~{O}\n{STATE}".replace("~", " " * 12), ""), ("        out[i : i + block_size] = out_i\n        m[i : i + block_size] = m_i\n        l[i : i + block_size] = l_i\n", ""), 4, None, 30, status="unfinished"),
    _c("TODO 4 left out", (f"            P_ij = {P}\n", ""), 4, None, 30, status="unfinished"),
    _c("an ellipsis for TODO 5", (LN, "l_new = ..."), 5, None, 40, status="unfinished"),
    _c("the stub line left in", ("    scale =", "    raise NotImplementedError('fill in')\n    scale ="), None, None, 80, status="unfinished"),
    _c("no return", ("    return out\n", ""), None, None, 95, status="unfinished"),
)
