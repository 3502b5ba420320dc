"""Lesson 4's checks: right answers get full marks however written, wrong ones what they deserve."""

# ruff: noqa: E501 (a table of answers: one case on a line)

from __future__ import annotations

import pytest
from answers import earns, written

# ---------------------------------------------------------------- exercise 1: traffic

V1 = """
def flash_attention_v1_sim(q, k, v, block_q=2, block_kv=2):
    seq_len, dim = q.shape
    out = torch.zeros_like(q)
    m = torch.full((seq_len, 1), -math.inf, dtype=q.dtype)
    l = torch.zeros((seq_len, 1), dtype=q.dtype)
    scale = 1.0 / math.sqrt(dim)
    read = written = 0
    for j in range(0, seq_len, block_kv):
        k_block, v_block = k[j:j+block_kv], v[j:j+block_kv]
        read += k_block.numel() + v_block.numel()
        for i in range(0, seq_len, block_q):
            q_block = q[i:i+block_q] * scale
            m_i, l_i, out_i = m[i:i+block_q], l[i:i+block_q], out[i:i+block_q]
            read += q_block.numel() + out_i.numel() + m_i.numel() + l_i.numel()
            S_ij = q_block @ k_block.T
            m_new = torch.maximum(m_i, S_ij.max(dim=-1, keepdim=True).values)
            P_ij = torch.exp(S_ij - m_new)
            alpha = torch.exp(m_i - m_new)
            l_new = alpha * l_i + P_ij.sum(dim=-1, keepdim=True)
            out_new = (l_i * alpha * out_i + P_ij @ v_block) / l_new
            out[i:i+block_q], m[i:i+block_q], l[i:i+block_q] = out_new, m_new, l_new
            written += out_new.numel() + m_new.numel() + l_new.numel()
    return out, read, written
"""
UPDATE_OF_THE_PAPER = (
    (
        "m_new = torch.maximum(m_i, S_ij.max(dim=-1, keepdim=True).values)\n"
        "            P_ij = torch.exp(S_ij - m_new)",
        "m_b = S_ij.max(dim=-1, keepdim=True).values\n"
        "            m_new = torch.maximum(m_i, m_b)\n"
        "            P_ij, beta = torch.exp(S_ij - m_b), torch.exp(m_b - m_new)",
    ),
    ("+ P_ij.sum(dim=-1, keepdim=True)", "+ beta * P_ij.sum(dim=-1, keepdim=True)"),
    ("+ P_ij @ v_block)", "+ beta * (P_ij @ v_block))"),
)


@pytest.mark.parametrize(
    "edits",
    [
        (),
        UPDATE_OF_THE_PAPER,
        (("(l_i * alpha * out_i + P_ij @ v_block) / l_new", "out_i * (l_i * alpha / l_new) + P_ij @ v_block / l_new"),),
        (("return out, read, written", "return [out, torch.tensor(read), float(written)]"),),
        (("read += q_block.numel() + out_i.numel() + m_i.numel() + l_i.numel()", "read += len(q_block) * (2 * dim + 2)"),),
    ],
)  # fmt: skip
def test_exercise_1_gives_full_marks_to(edits: tuple) -> None:
    earns("v1v2.traffic", written(V1, "flash_attention_v1_sim", *edits), 20)


Q_OUTSIDE = """
def flash_attention_v1_sim(q, k, v, block_q=2, block_kv=2):
    out, read, written = torch.softmax(q @ k.T / math.sqrt(q.shape[1]), dim=-1) @ v, 0, 0
    for i in range(0, len(q), block_q):
        read += q[i:i+block_q].numel()
        for j in range(0, len(k), block_kv):
            read += k[j:j+block_kv].numel() + v[j:j+block_kv].numel()
        written += out[i:i+block_q].numel() + len(out[i:i+block_q])
    return out, read, written
"""


@pytest.mark.parametrize(
    ("source", "edits", "points", "words"),
    [
        (Q_OUTSIDE, (), 0, "Q is still your outer loop"),
        (V1, ((" + m_i.numel() + l_i.numel()", ""),), 14, "m and l come from HBM as well"),
        (V1, (("q_block.numel() + out_i.numel()", "q_block.numel()"),), 14, "both Q and O come in"),
        (V1, ((" + m_new.numel() + l_new.numel()", ""),), 14, "m and l are written too"),
        (V1, (("read, written\n", "8 * read, 8 * written\n"),), 8, "Count elements, not bytes"),
        (V1, (("written += out_new", "written = out_new"),), 14, "should be"),
        (V1, (("alpha * l_i +", "l_i +"),), 12, "off by"),
        (V1, (("(l_i * alpha * out_i", "(alpha * out_i"),), 12, "off by"),
        (V1, (("m_new = torch.maximum(m_i, S_ij", "m_new = torch.maximum(m_i * 0, S_ij"),), 12, "NaN"),
        (V1, (("q[i:i+block_q] * scale", "q[i:i+block_q]"),), 12, "lack the factor 1/√dim"),
        (V1, (("return out, read, written", "return out"),), 0, "Return 3 things"),
        (V1, (("return out, read, written", "raise NotImplementedError"),), 0, "Not finished"),
        (V1, (("return out, read, written", "return out, str(read), written"),), 14, "a number"),
    ],
)  # fmt: skip
def test_exercise_1_takes_marks_for(source: str, edits: tuple, points: float, words: str) -> None:
    earns("v1v2.traffic", written(source, "flash_attention_v1_sim", *edits), points, words)


# ---------------------------------------------------------------- exercise 2: FlashAttention-2

V2 = """
def flash_attention_v2_sim(q, k, v, block_size=2):
    rows, dim = q.shape
    keys, dim_v = v.shape
    scale = 1.0 / math.sqrt(dim)
    out = torch.empty((rows, dim_v), dtype=q.dtype)
    L = torch.empty((rows, 1), dtype=q.dtype)
    for i in range(0, rows, block_size):
        q_block = q[i:i+block_size] * scale
        m_i = q_block.new_full((q_block.shape[0], 1), -math.inf)
        l_i = q_block.new_zeros((q_block.shape[0], 1))
        out_i = q_block.new_zeros((q_block.shape[0], dim_v))
        for j in range(0, keys, block_size):
            S_ij = q_block @ k[j:j+block_size].T
            m_new = torch.maximum(m_i, S_ij.max(dim=-1, keepdim=True).values)
            P_ij = torch.exp(S_ij - m_new)
            alpha = torch.exp(m_i - m_new)
            l_i = alpha * l_i + P_ij.sum(dim=-1, keepdim=True)
            out_i = alpha * out_i + P_ij @ v[j:j+block_size]
            m_i = m_new
        out[i:i+block_size] = out_i / l_i
        L[i:i+block_size] = m_i + torch.log(l_i)
    return out, L
"""
UPDATES = (
    "            l_i = alpha * l_i + P_ij.sum(dim=-1, keepdim=True)\n"
    "            out_i = alpha * out_i + P_ij @ v[j:j+block_size]\n"
)


@pytest.mark.parametrize(
    "edits",
    [
        (),
        ((UPDATES, UPDATES.replace("l_i = alpha * l_i +", "l_i *= alpha; l_i +=").replace("out_i = alpha * out_i +", "out_i *= alpha; out_i +=")),),
        (("out_i / l_i", "out_i * l_i.reciprocal()"),),
        ((UPDATES, UPDATES.replace("dim=-1", "dim=1").replace("out_i = alpha * out_i + P_ij @", "out_i = torch.addmm(alpha * out_i, P_ij,").replace("v[j:j+block_size]", "v[j:j+block_size])")),),
        (("-math.inf)", "-1e9)"),),
        (("q[i:i+block_size] * scale", "q[i:i+block_size] / math.sqrt(dim)"), ("torch.log(l_i)", "l_i.log()")),
    ],
)  # fmt: skip
def test_exercise_2_gives_full_marks_to(edits: tuple) -> None:
    earns("v1v2.v2", written(V2, "flash_attention_v2_sim", *edits), 25)


WHOLE = """
def flash_attention_v2_sim(q, k, v, block_size=2):
    S = q @ k.T / math.sqrt(q.shape[1])
    return torch.softmax(S, dim=-1) @ v, torch.logsumexp(S, dim=-1, keepdim=True)
"""
HYBRID = (
    (UPDATES, "            l_new = alpha * l_i + P_ij.sum(dim=-1, keepdim=True)\n"
              "            out_i = out_i * (l_i * alpha / l_new) + P_ij @ v[j:j+block_size] / l_new\n"
              "            l_i = l_new\n"),
    ("out_i / l_i", "out_i"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("source", "edits", "points", "words"),
    [
        (WHOLE, (), 5, "all 12 × 20 scores at once"),
        (V2, HYBRID, 20, "still normalised at each tile"),
        (V2, (("out_i / l_i", "out_i"),), 10, "division by l at the end is missing"),
        (V2, (("alpha * out_i +", "out_i +"),), 10, "O isn't"),
        (V2, (("alpha * l_i +", "l_i +"),), 5, "off by"),
        (V2, (("alpha * l_i +", "l_i +"), ("alpha * out_i +", "out_i +")), 5, "never rescaled"),
        (V2, (("alpha * out_i +", "(out_i / alpha if j else 0) +"),), 10, "inverse"),
        (V2, (("m_i + torch.log(l_i)", "m_i + l_i"),), 15, "take the logarithm of l"),
        (V2, (("m_i + torch.log(l_i)", "torch.log(l_i)"),), 15, "add m"),
        (V2, (("m_i + torch.log(l_i)", "m_i"),), 15, "m alone"),
        (V2, (("S_ij - m_new", "S_ij"), ("alpha = torch.exp(m_i - m_new)", "alpha = 1")), 15, "`L` is off"),
        (V2, ((", dtype=q.dtype", ""),), 5, "float32"),
        (V2, (("return out, L", "return out, L.squeeze(1)"),), 15, "shape"),
        (V2, (("q[i:i+block_size] * scale", "q[i:i+block_size]"),), 5, "lack the factor"),
        (V2, (("return out, L", "return out"),), 0, "Return 2 things"),
        (V2, (("q_block = q[i:i+block_size] * scale", "q_block = q[i:i+block_size].mul_(scale)"),), 20, "wrote to its input"),
    ],
)  # fmt: skip
def test_exercise_2_takes_marks_for(source: str, edits: tuple, points: float, words: str) -> None:
    earns("v1v2.v2", written(source, "flash_attention_v2_sim", *edits), points, words)


# ---------------------------------------------------------------- exercise 3: the misprint

MISPRINT = (
    V2.replace("block_size=2)", "block_size=2, power=1)")
    .replace("alpha * out_i +", "(alpha**power * out_i if j else 0) +")
    .replace("return out, L", "return out")
    + """
def misprint_errors(q, k, v, block_size=2):
    exact = attention(q, k, v)
    printed = flash_attention_v2_sim(q, k, v, block_size, power=-1)
    corrected = flash_attention_v2_sim(q, k, v, block_size)
    printed_error, corrected_error = ((out - exact).abs().max().item() for out in (printed, corrected))
    return printed_error, corrected_error, "corrected"
"""
)


@pytest.mark.parametrize(
    "edits",
    [
        (),
        ((".max().item()", ".max()"),),
        (("((out - exact).abs().max().item() for out in (printed, corrected))", "[torch.dist(o, exact, p=math.inf) for o in (printed, corrected)]"),),
        (("(out - exact).abs().max().item()", "max(abs(a - b) for x, y in zip(out.tolist(), exact.tolist()) for a, b in zip(x, y))"),),
        (("alpha = torch.exp(m_i - m_new)", "alpha = torch.exp2((m_i - m_new) * math.log2(math.e))"),),
        (("alpha = torch.exp(m_i - m_new)", "m_i.squeeze().shape[0]; alpha = torch.exp(m_i - m_new)"),),
        (("return printed_error, corrected_error,", "return [printed_error, corrected_error,"), ('"corrected"\n', '"corrected"]\n')),
        (('"corrected"\n', '"corrected" if corrected_error < printed_error else "printed"\n'),),
    ],
)  # fmt: skip
def test_exercise_3_gives_full_marks_to(edits: tuple) -> None:
    earns("v1v2.misprint", written(MISPRINT, "misprint_errors", *edits), 10)


@pytest.mark.parametrize(
    ("edits", "points", "words"),
    [
        (((" if j else 0)", ")"),), 6, "leave the factor out there"),
        ((('"corrected"\n', '"printed"\n'),), 7, "which is near 0"),
        ((('"corrected"\n', "True\n"),), 7, "should be"),
        ((("block_size, power=-1", "block_size, power=1"),), 6, "printed line's error"),
        ((("block_size, power=-1", "block_size, power=0"),), 6, "printed line's error"),
        ((("return printed_error, corrected_error,", "return corrected_error, printed_error,"),), 3, "printed line's error"),
        ((("abs().max()", "abs().mean()"),), 6, "printed line's error"),
        ((("corrected = flash_attention_v2_sim(q, k, v, block_size)", "corrected = flash_attention_v2_sim(q.float(), k.float(), v.float(), block_size)"),), 7, "below 1e-10"),
        ((("return printed_error, corrected_error, ", "return "),), 0, "Return 3 things"),
        ((('return printed_error, corrected_error, "corrected"', "return 10.8, 0.0, 'corrected'"),), 0, "measure it"),
        ((('return printed_error, corrected_error, "corrected"', "return math.nan, 0.0, 'corrected'"),), 0, "measure it"),
        ((('return printed_error, corrected_error, "corrected"', "return math.nan, 2.2e-16, 'corrected'"),), 0, "measure it"),
        ((('return printed_error, corrected_error, "corrected"', "return 1.0, 1e-16 * float(v.abs().max()), 'corrected'"),), 0, "measure it"),
        ((('return printed_error, corrected_error, "corrected"', "return None, None, 'corrected'"),), 0, "no number"),
        ((('return printed_error, corrected_error, "corrected"', "return printed_error, 0.0, 'corrected'"),), 7, "measure it"),
        ((('return printed_error, corrected_error, "corrected"', "raise NotImplementedError"),), 0, "Not finished"),
    ],
)  # fmt: skip
def test_exercise_3_takes_marks_for(edits: tuple, points: float, words: str) -> None:
    earns("v1v2.misprint", written(MISPRINT, "misprint_errors", *edits), points, words)


# ---------------------------------------------------------------- exercise 4: recomputation

BACKWARD = """
def flash_attention_backward_sim(q, k, v, out, L, dout, block_size=2):
    scale = 1.0 / math.sqrt(q.shape[1])
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for i in range(0, q.shape[0], block_size):
        rows = slice(i, i + block_size)
        D_i = (dout[rows] * out[rows]).sum(dim=-1, keepdim=True)
        for j in range(0, k.shape[0], block_size):
            keys = slice(j, j + block_size)
            P_ij = torch.exp(q[rows] @ k[keys].T * scale - L[rows])
            dS_ij = P_ij * (dout[rows] @ v[keys].T - D_i)
            dq[rows] += dS_ij @ k[keys] * scale
            dk[keys] += dS_ij.T @ q[rows] * scale
            dv[keys] += P_ij.T @ dout[rows]
    return dq, dk, dv
"""
KV_OUTSIDE = BACKWARD.replace(
    "    for i in range(0, q.shape[0], block_size):", "    for j in range(0, k.shape[0], block_size):"
).replace("        for j in range(0, k.shape[0], block_size):\n            keys", "        for i in range(0, q.shape[0], block_size):\n            keys")  # fmt: skip
KV_OUTSIDE = (
    KV_OUTSIDE.replace("        rows = slice(i, i + block_size)\n", "")
    .replace("        D_i = (dout[rows] * out[rows]).sum(dim=-1, keepdim=True)\n", "")
    .replace(
        "            keys = slice(j, j + block_size)\n",
        "            keys, rows = slice(j, j + block_size), slice(i, i + block_size)\n"
        "            D_i = (dout[rows] * out[rows]).sum(dim=-1, keepdim=True)\n",
    )
)
ONE_FORMULA = """
def flash_attention_backward_sim(q, k, v, out, L, dout, block_size=2):
    grads = [torch.zeros_like(t) for t in (q, k, v)]
    for qs, os, Ls, gs, dqs in zip(*(t.split(block_size) for t in (q, out, L, dout, grads[0]))):
        for ks, vs, dks, dvs in zip(*(t.split(block_size) for t in (k, v, *grads[1:]))):
            P = torch.einsum("id,jd->ij", qs, ks).div(math.sqrt(q.shape[1])).sub_(Ls).exp_()
            dvs.addmm_(P.T, gs)
            dS = P.mul_(torch.einsum("id,jd->ij", gs, vs) - torch.einsum("id,id->i", gs, os)[:, None])
            dqs.addmm_(dS, ks, alpha=q.shape[1] ** -0.5)
            dks.addmm_(dS.T, qs, alpha=q.shape[1] ** -0.5)
    return tuple(grads)
"""
D_OF_P = """
def flash_attention_backward_sim(q, k, v, out, L, dout, block_size=2):
    # Twice over the keys: D is the row sum of P ∘ dP.
    scale, dq, dk, dv = q.shape[1] ** -0.5, torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for i in range(0, len(q), block_size):
        rows = slice(i, i + block_size)
        tiles = [slice(j, j + block_size) for j in range(0, len(k), block_size)]
        P = lambda keys: torch.exp2(((q[rows] * scale) @ k[keys].mT - L[rows]) * math.log2(math.e))
        D = sum((P(keys) * (dout[rows] @ v[keys].mT)).sum(1, keepdim=True) for keys in tiles)
        for keys in reversed(tiles):
            dS = P(keys) * (dout[rows] @ v[keys].mT - D)
            dq[rows] += scale * dS @ k[keys]
            dk[keys] += scale * dS.mT @ q[rows]
            dv[keys] += P(keys).mT @ dout[rows]
    return dq, dk, dv
"""
GRAPH_OF_A_TILE = """
def flash_attention_backward_sim(q, k, v, out, L, dout, block_size=2):
    # Autograd of one tile with L held fixed, and what L adds to it by hand.
    dq, dk, dv = (torch.zeros_like(t) for t in (q, k, v))
    for i in range(0, len(q), block_size):
        for j in range(0, len(k), block_size):
            r, c = slice(i, i + block_size), slice(j, j + block_size)
            tile = [t.clone().requires_grad_() for t in (q[r], k[c], v[c])]
            with torch.enable_grad():
                P = torch.exp(tile[0] @ tile[1].T / math.sqrt(q.shape[1]) - L[r])
                a, b, g = torch.autograd.grad(P @ tile[2], tile, dout[r])
            PD = P.detach() * (dout[r] * out[r]).sum(1, keepdim=True) / math.sqrt(q.shape[1])
            dq[r] += a - PD @ k[c]
            dk[c] += b - PD.T @ q[r]
            dv[c] += g
    return dq, dk, dv
"""
SCALED_Q = (
    ("q[rows] @ k[keys].T * scale", "(q[rows] * scale) @ k[keys].T"),
    ("dS_ij.T @ q[rows] * scale", "dS_ij.T @ (q[rows] * scale)"),
)


@pytest.mark.parametrize(
    ("source", "edits"),
    [
        (BACKWARD, ()),
        (KV_OUTSIDE, ()),
        (ONE_FORMULA, ()),
        (D_OF_P, ()),
        (GRAPH_OF_A_TILE, ()),
        (BACKWARD, SCALED_Q),
        (BACKWARD, (("- D_i)", ")"), ("dS_ij = P_ij * (", "dS_ij = P_ij * (-D_i + "))),
        (BACKWARD, (("(dout[rows] * out[rows]).sum(dim=-1, keepdim=True)", "torch.einsum('ij,ij->i', dout[rows], out[rows])[:, None]"),)),
    ],
)  # fmt: skip
def test_exercise_4_gives_full_marks_to(source: str, edits: tuple) -> None:
    function = written(source, "flash_attention_backward_sim", *edits)
    earns("v1v2.backward", function, 30)


AUTOGRAD = """
def flash_attention_backward_sim(q, k, v, out, L, dout, block_size=2):
    q, k, v = (t.clone().requires_grad_() for t in (q, k, v))
    with torch.enable_grad():
        o = torch.softmax(q @ k.T / math.sqrt(q.shape[1]), dim=-1) @ v
        return torch.autograd.grad(o, (q, k, v), dout)
"""
AUTOGRAD_BY_ROWS = """
def flash_attention_backward_sim(q, k, v, out, L, dout, block_size=2):
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for i in range(len(q)):
        r, K, V = (t.clone().requires_grad_() for t in (q[i], k, v))
        with torch.enable_grad():
            o = torch.softmax(K @ r / math.sqrt(q.shape[1]), dim=0) @ V
            dq[i], b, c = torch.autograd.grad(o, (r, K, V), dout[i])
        dk, dv = dk + b, dv + c
    return dq, dk, dv
"""
ARRAYS_WITHOUT_L = """
def flash_attention_backward_sim(q, k, v, out, L, dout, block_size=2):
    a, b, c, g = (t.numpy() for t in (q, k, v, dout))
    S = a @ b.T / math.sqrt(q.shape[1])
    P = math.e ** (S - S.max(1, keepdims=True))
    P /= P.sum(1, keepdims=True)
    dS = P * (g @ c.T - (P * (g @ c.T)).sum(1, keepdims=True)) / math.sqrt(q.shape[1])
    return tuple(torch.from_numpy(x) for x in (dS @ b, dS.T @ a, P.T @ g))
"""
SOFTMAX_AGAIN = (
    (
        "P_ij = torch.exp(q[rows] @ k[keys].T * scale - L[rows])",
        "P_ij = torch.softmax(q[rows] @ k.T * scale, dim=-1)[:, keys]",
    ),
)
NOTHING_READ = """
def flash_attention_backward_sim(q, k, v, out, L, dout, block_size=2):
    return q * 0, k * 0, v * 0
"""


@pytest.mark.parametrize(
    ("source", "edits", "points"),
    [
        (AUTOGRAD, (), 0),
        (AUTOGRAD_BY_ROWS, (), 0),
        (ARRAYS_WITHOUT_L, (), 0),
        (BACKWARD, SOFTMAX_AGAIN, 16),  # the chain rule is there, with D of `out`
        (BACKWARD, (*SOFTMAX_AGAIN, ("dS_ij @ k[keys] * scale", "dS_ij @ k[keys]")), 8),
    ],
)  # fmt: skip
def test_gradients_that_do_not_come_of_L_recompute_nothing(
    source: str, edits: tuple, points: float
) -> None:
    answer = written(source, "flash_attention_backward_sim", *edits)
    earns("v1v2.backward", answer, points, "don't follow from the `L`")


def test_no_gradient_at_all_earns_nothing() -> None:
    earns("v1v2.backward", written(NOTHING_READ, "flash_attention_backward_sim"), 0, "off by")


WHOLE_P = """
def flash_attention_backward_sim(q, k, v, out, L, dout, block_size=2):
    scale = 1 / math.sqrt(q.shape[1])
    P = torch.exp(q @ k.T * scale - L)
    dS = P * (dout @ v.T - (dout * out).sum(dim=-1, keepdim=True)) * scale
    return dS @ k, dS.T @ q, P.T @ dout
"""


@pytest.mark.parametrize(
    ("source", "edits", "points", "words"),
    [
        (WHOLE_P, (), 24, "matrix P"),
        (BACKWARD, (("dS_ij @ k[keys] * scale", "dS_ij @ k[keys]"),), 22, "1/√dim is missing"),
        (BACKWARD, (("dS_ij.T @ q[rows] * scale", "dS_ij.T @ q[rows]"),), 22, "1/√dim is missing"),
        (BACKWARD, ((" - D_i)", ")"),), 14, "D is not subtracted"),
        (BACKWARD, (("P_ij * (dout[rows] @ v[keys].T - D_i)", "P_ij * (dout[rows] @ v[keys].T) - D_i"),), 14, "the difference dP − D"),
        (BACKWARD, (("dq[rows] +=", "dq[rows] ="),), 22, "add with `+=`"),
        (BACKWARD, (("dv[keys] +=", "dv[keys] ="),), 22, "add with `+=`"),
        (BACKWARD, (("dv[keys] += P_ij.T @", "dv[keys] += dS_ij.T @"),), 22, "dv needs P, not dS"),
        (BACKWARD, (("P_ij.T @ dout[rows]", "P_ij.T @ dout[rows] * scale"),), 22, "dv has no factor"),
        (BACKWARD, ((" * scale - L[rows]", " - L[rows]"),), 6, "off by"),
        (BACKWARD, (("dout[rows] * out[rows]", "dout[rows] * dout[rows]"),), 14, "off by"),
        (BACKWARD, (("return dq, dk, dv", "return dq, dv, dk"),), 14, "off by"),
        (BACKWARD, (("return dq, dk, dv", "return dq, dk"),), 0, "Return 3 things"),
        (BACKWARD, (("- L[rows])", "- L)"),), 0, "raised"),
    ],
)  # fmt: skip
def test_exercise_4_takes_marks_for(source: str, edits: tuple, points: float, words: str) -> None:
    function = written(source, "flash_attention_backward_sim", *edits)
    earns("v1v2.backward", function, points, words)


WHOLE_V1 = """
def flash_attention_v1_sim(q, k, v, block_q=2, block_kv=2):
    (n, d), tiles = q.shape, -(-len(k) // block_kv)
    out = torch.softmax(q @ k.T / math.sqrt(d), dim=-1) @ v
    return out, 2 * n * d + tiles * (2 * n * d + 2 * n), tiles * (n * d + 2 * n)
"""
ARRAYS_V2 = """
def flash_attention_v2_sim(q, k, v, block_size=2):
    a, b, c = (t.double().numpy() for t in (q, k, v))
    S = a @ b.T / math.sqrt(q.shape[1])
    top = S.max(1, keepdims=True)
    P = math.e ** (S - top)
    l = P.sum(1, keepdims=True)
    return torch.from_numpy(P @ c / l).to(q.dtype), torch.tensor(top).to(q.dtype) + torch.tensor(l).log().to(q.dtype)
"""
ROWS_V2 = """
def flash_attention_v2_sim(q, k, v, block_size=2):
    S = [k @ row / math.sqrt(q.shape[1]) for row in q]
    out = torch.stack([torch.softmax(s, dim=0) @ v for s in S])
    return out, torch.stack([torch.logsumexp(s, dim=0) for s in S])[:, None]
"""
NOTHING_V2 = """
def flash_attention_v2_sim(q, k, v, block_size=2):
    return q.new_zeros(len(q), v.shape[1]), q.new_zeros(len(q), 1)
"""
SHOW = """    for part in q.split(block_size):
        for other in k.split(block_size):
            torch.exp(part @ other.T / math.sqrt(q.shape[1]))
"""
PASSES_V2 = """
def flash_attention_v2_sim(q, k, v, block_size=2):
    c, ks, vs = q / math.sqrt(q.shape[1]), k.split(block_size), v.split(block_size)
    top = torch.stack([(c @ x.T).amax(1, keepdim=True) for x in ks]).amax(0)
    l = sum(torch.exp(c @ x.T - top).sum(1, keepdim=True) for x in ks)
    return sum(torch.exp(c @ x.T - top) @ y for x, y in zip(ks, vs)) / l, top + torch.log(l)
"""


@pytest.mark.parametrize(
    ("exercise", "source", "points"),
    [
        ("v1v2.traffic", WHOLE_V1, 12),
        ("v1v2.v2", ARRAYS_V2, 5),
        ("v1v2.v2", ROWS_V2, 5),
        ("v1v2.v2", ARRAYS_V2.replace("    top", SHOW + "    top"), 5),
        ("v1v2.v2", PASSES_V2, 20),  # not online, but in tiles
    ],
)
def test_a_softmax_over_whole_rows_is_found_in_the_output(
    exercise: str, source: str, points: float
) -> None:
    name = source.split("(")[0].split()[-1]
    earns(exercise, written(source, name), points, "maximum of the whole row")


def test_zeros_of_the_right_shape_are_no_attention() -> None:
    earns("v1v2.v2", written(NOTHING_V2, "flash_attention_v2_sim"), 0, "off by")
