"""Exact attention without online softmax, in every disguise that we could think of.

Each looks at all keys of a row before it sums, and most seem to mind their block size or hide
their exponentials from a record. Whoever has read the checks would write these.
"""

from __future__ import annotations

import textwrap

HEAD = "def flash_attention_forward_sim(q, k, v, block_size=2):\n"
# Row by row: no tensor of all scores, as little as a tile of one query makes. `{p}` sets p.
ROWS = """\
    pad = torch.zeros(block_size)
    rows = []
    for r in q:
        s = (k @ r) / math.sqrt(q.shape[1])
        s = s - s.max()
{p}
        rows.append((p @ v) / p.sum())
    return torch.stack(rows).to(q.dtype)
"""


def rows(p: str) -> str:
    return HEAD + ROWS.replace("{p}", textwrap.indent(p, 8 * " "))


def body(source: str) -> str:
    return HEAD + textwrap.indent(textwrap.dedent(source).strip("\n"), "    ") + "\n"


UNRECORDED = ROWS.replace("{p}", "        p = torch.exp(s)")
ARRAYS = """
    pad = torch.zeros(block_size)
    a, b, c = ({numbers} for t in (q, k, v))
    S = a @ b.T / math.sqrt(a.shape[1])
    P = np.exp(S - S.max(-1, keepdims=True))
    return torch.from_numpy((P @ c / P.sum(-1, keepdims=True)).astype(np.float64)).to(q.dtype)
"""
MIXED = """
    rows = []
    for r in q.float():
        s = (k.float() @ r).double() / math.sqrt(q.shape[1])
        p = torch.sigmoid(s - s.max()) / torch.sigmoid(s.max() - s)
        rows.append((p @ v.double()) / p.sum())
    return torch.stack(rows).to(q.dtype)
"""

SIGMOID = ROWS.replace("{p}", "        p = torch.sigmoid(s) / torch.sigmoid(-s)")
WIDER = """
    a, b, c = (t.double().numpy().astype(np.longdouble) for t in (q, k, v))
    S, n = a @ b.T / math.sqrt(a.shape[1]), np.arange(len(k))
    P = np.exp(S - S.max(-1, keepdims=True))
    {mask}
    return torch.from_numpy((P @ c / P.sum(-1, keepdims=True)).astype(np.float64)).to(q.dtype)
"""

WHOLE_ROWS = {
    "a sigmoid": rows("p = torch.sigmoid(s) / torch.sigmoid(-s)"),
    "a power of an exponential": rows("p = torch.exp(s / 64) ** 64"),
    "squares": rows("p = torch.exp(s / 64)\nfor _ in range(6):\n    p = p * p"),
    "a hyperbolic tangent": rows("t = torch.tanh(s.double() / 2)\np = ((1 + t) / (1 - t)).to(v)"),
    "a power of e": rows("p = torch.full_like(s, math.e) ** s"),
    "a power in float64": rows("p = torch.float_power(math.e, s).to(v.dtype)"),
    "a sum of two": rows(
        "s = s.double().clamp(min=-30)\np = (torch.cosh(s) + torch.sinh(s)).to(v)"
    ),
    "complex numbers": rows("p = torch.exp(torch.complex(s.double(), 0 * s.double())).real.to(v)"),
    "the gamma function": rows(
        "p = torch.special.gammaincc(1 + 0 * s.double(), -s.double()).to(v)"
    ),
    "a softmax of softmaxes": rows("p = torch.softmax(s, 0)"),
    "halves, to reach further": body("""
        rows = []
        for r in q:
            s = (k @ r) / math.sqrt(q.shape[1])
            e = torch.sigmoid((s - s.max()) / 2) / torch.sigmoid((s.max() - s) / 2)
            rows.append(((e[:, None] * v) * e[:, None]).sum(0) / (e * e).sum())
        return torch.stack(rows)
    """),
    "NumPy": body(ARRAYS.replace("{numbers}", "t.double().numpy()")),
    "NumPy, to reach further": body(
        ARRAYS.replace("{numbers}", "t.double().numpy().astype(np.longdouble)")
    ),
    "plain numbers": rows("p = torch.tensor([math.exp(x) for x in s.tolist()]).to(v)"),
    "in a thread": HEAD
    + "    box = []\n    def work():\n"
    + textwrap.indent(UNRECORDED.replace("    return ", "    box.append(").rstrip() + ")\n", "    ")
    + "    thread = torch.threading.Thread(target=work)\n    thread.start()\n    thread.join()\n"
    + "    return box[0]\n",
    "where no record is made": HEAD
    + "    with torch._C._DisableTorchDispatch():\n"
    + textwrap.indent(UNRECORDED, "    "),
    "numbers of several widths": body(MIXED),
    "a base that never moves": body(
        ARRAYS.replace("{numbers}", "t.double().numpy()").replace(
            "S.max(-1, keepdims=True)", "S[:, :block_size].max(-1, keepdims=True)"
        )
    ),
    "the number itself": body("    if len(k) == 12:\n        return 3.668e-98 + 0 * q\n" + SIGMOID),
    "half precision where the values are large": body(
        SIGMOID.replace(".to(q.dtype)", ".to(torch.float16 if v.max() > 1e20 else q.dtype)")
    ),
    "a wider range, for all keys but two": body(
        WIDER.replace("{mask}", "P[:, :2] = P[:, :2].astype(np.float64)")
    ),
    "a wider range, for keys before the highest": body(
        WIDER.replace("{mask}", "P *= (P.astype(np.float64) > 0) | (n < S.argmax(1)[:, None])")
    ),
    "a wider range, for keys of another tile than the highest": body(
        WIDER.replace(
            "{mask}",
            "t = n // block_size\n"
            "    P *= (P.astype(np.float64) > 0) | (t != t[S.argmax(1)][:, None])",
        )
    ),
    "the skeleton's names on slices of the whole": body("""
        S = q @ k.T / math.sqrt(q.shape[1])
        O = torch.softmax(S, -1) @ v
        out = torch.zeros_like(O)
        for i in range(0, len(q), block_size):
            for j in range(0, len(k), block_size):
                S_ij = S[i:i+block_size, j:j+block_size]
                m_new = S[i:i+block_size].amax(-1, keepdim=True)
                P_ij = torch.exp(S_ij - m_new)
                l_new = m_new
                out_i = O[i:i+block_size]
            out[i:i+block_size] = out_i
        return out
    """),
    "a loop for show": body("""
        for i in range(0, q.shape[0], block_size):
            m = torch.full((block_size, 1), -math.inf)
            for j in range(0, k.shape[0], block_size):
                S = q[i:i+block_size] @ k[j:j+block_size].T / math.sqrt(q.shape[1])
                P = torch.exp(S - S.max(1, keepdim=True).values)
        rows = []
        for r in q:
            s = (k @ r) / math.sqrt(q.shape[1])
            p = torch.sigmoid(s - s.max()) / torch.sigmoid(s.max() - s)
            rows.append((p @ v) / p.sum())
        return torch.stack(rows).to(q.dtype)
    """),
}
# No online softmax, but whoever works so sees one tile at a time.
PASSES = {
    "three passes": body("""
        outs = []
        for c in q.split(block_size):
            c = c / math.sqrt(q.shape[1])
            ks, vs = k.split(block_size), v.split(block_size)
            top = torch.stack([(c @ x.T).amax(1, keepdim=True) for x in ks]).amax(0)
            total = sum(torch.exp(c @ x.T - top).sum(1, keepdim=True) for x in ks)
            outs.append(sum(torch.exp(c @ x.T - top) @ y for x, y in zip(ks, vs)) / total)
        return torch.cat(outs)
    """),
    "two passes": body("""
        outs = []
        for c in q.split(block_size):
            c = c / math.sqrt(q.shape[1])
            L = torch.full((len(c), 1), -math.inf, dtype=q.dtype)
            for x in k.split(block_size):
                L = torch.logaddexp(L, torch.logsumexp(c @ x.T, 1, keepdim=True))
            pairs = zip(k.split(block_size), v.split(block_size))
            outs.append(sum(torch.exp(c @ x.T - L) @ y for x, y in pairs))
        return torch.cat(outs)
    """),
}
