"""Right answers to `flash_attention_forward_sim`, in as many styles as people write.

Every function here that begins with `wheat_` must get full marks.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F


def wheat_skeleton(q, k, v, block_size=2):
    seq_len, dim = q.shape
    out = torch.zeros_like(q)
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
            m_block = torch.max(S_ij, dim=-1, keepdim=True)[0]
            m_new = torch.maximum(m_i, m_block)
            P_ij = torch.exp(S_ij - m_new)
            l_block = torch.sum(P_ij, dim=-1, keepdim=True)
            l_new = l_i * torch.exp(m_i - m_new) + l_block
            out_i = out_i * (l_i * torch.exp(m_i - m_new) / l_new) + (P_ij @ v_block) / l_new
            m_i = m_new
            l_i = l_new
        out[i : i + block_size] = out_i
        m[i : i + block_size] = m_i
        l[i : i + block_size] = l_i
    return out


def wheat_deferred_division(q, k, v, block_size=2):
    seq_len, dim = q.shape
    out = torch.zeros((seq_len, v.shape[-1]), dtype=q.dtype)
    m = torch.full((seq_len, 1), float("-inf"), dtype=q.dtype)
    l = torch.zeros((seq_len, 1), dtype=q.dtype)
    scale = dim**-0.5
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] * scale
        m_i, l_i, out_i = (t[i : i + block_size] for t in (m, l, out))
        for j in range(0, seq_len, block_size):
            S_ij = q_block @ k[j : j + block_size].T
            m_new = torch.maximum(m_i, S_ij.amax(-1, keepdim=True))
            P_ij = (S_ij - m_new).exp()
            alpha = (m_i - m_new).exp()
            l_i = alpha * l_i + P_ij.sum(-1, keepdim=True)
            out_i = alpha * out_i + P_ij @ v[j : j + block_size]
            m_i = m_new
        out[i : i + block_size] = out_i / l_i
    return out


def wheat_divided_after_all_loops(q, k, v, block_size=2):
    seq_len, dim = q.shape
    out = torch.zeros_like(q)
    m = torch.full((seq_len, 1), -1e9, dtype=q.dtype)
    l = torch.zeros((seq_len, 1), dtype=q.dtype)
    for i in range(0, seq_len, block_size):
        rows = slice(i, i + block_size)
        for j in range(0, seq_len, block_size):
            S_ij = (q[rows] @ k[j : j + block_size].T) / math.sqrt(dim)
            m_block = S_ij.max(dim=-1, keepdim=True).values
            m_new = torch.max(m[rows], m_block)
            P_ij = torch.exp(S_ij - m_new)
            correction = torch.exp(m[rows] - m_new)
            l[rows] = correction * l[rows] + P_ij.sum(dim=-1, keepdim=True)
            out[rows] = correction * out[rows] + P_ij @ v[j : j + block_size]
            m[rows] = m_new
    return out / l


def wheat_written_back_in_the_inner_loop(q, k, v, block_size=2):
    seq_len, dim = q.shape
    out = torch.zeros_like(q)
    m = torch.full((seq_len, 1), -math.inf, dtype=q.dtype)
    l = torch.ones((seq_len, 1), dtype=q.dtype)
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] / math.sqrt(dim)
        for j in range(0, seq_len, block_size):
            m_i = m[i : i + block_size].clone()
            l_i = l[i : i + block_size].clone()
            out_i = out[i : i + block_size].clone()
            S_ij = torch.matmul(q_block, k[j : j + block_size].t())
            m_block, _ = S_ij.max(dim=1, keepdim=True)
            m_new = torch.maximum(m_i, m_block)
            P_ij = torch.exp(S_ij - m_new)
            l_block = P_ij.sum(1, True)
            l_new = torch.exp(m_i - m_new) * l_i + l_block
            out_i = (l_i * torch.exp(m_i - m_new) * out_i + P_ij @ v[j : j + block_size]) / l_new
            out[i : i + block_size] = out_i
            m[i : i + block_size] = m_new
            l[i : i + block_size] = l_new
    return out


def wheat_flash_attention_1_order(q, k, v, block_size=2):
    """K/V blocks outside, Q blocks inside, P relative to the tile's own maximum (2205.14135)."""
    N, d = q.shape
    O = torch.zeros_like(q)
    l = torch.zeros(N, dtype=q.dtype)
    m = torch.full((N,), -torch.inf, dtype=q.dtype)
    for j in range(0, N, block_size):
        Kj, Vj = k[j : j + block_size], v[j : j + block_size]
        for i in range(0, N, block_size):
            Qi = q[i : i + block_size]
            Oi, li, mi = O[i : i + block_size], l[i : i + block_size], m[i : i + block_size]
            Sij = Qi @ Kj.T * d**-0.5
            mij = Sij.max(dim=1).values
            Pij = torch.exp(Sij - mij[:, None])
            lij = Pij.sum(dim=1)
            mi_new = torch.maximum(mi, mij)
            li_new = torch.exp(mi - mi_new) * li + torch.exp(mij - mi_new) * lij
            old = (li * torch.exp(mi - mi_new))[:, None] * Oi
            O[i : i + block_size] = (old + torch.exp(mij - mi_new)[:, None] * (Pij @ Vj)) / li_new[
                :, None
            ]
            l[i : i + block_size] = li_new
            m[i : i + block_size] = mi_new
    return O


def wheat_triton_names(q, k, v, block_size=2):
    n, d = q.shape
    o = torch.empty_like(q)
    for start_m in range(0, n, block_size):
        qb = q[start_m : start_m + block_size]
        m_i = torch.full((qb.shape[0],), -float("inf"), dtype=q.dtype)
        l_i = torch.zeros(qb.shape[0], dtype=q.dtype)
        acc = torch.zeros(qb.shape[0], v.shape[1], dtype=q.dtype)
        for start_n in range(0, n, block_size):
            qk = qb @ k[start_n : start_n + block_size].T / math.sqrt(d)
            m_ij = torch.maximum(m_i, qk.max(1)[0])
            p = torch.exp(qk - m_ij[:, None])
            alpha = torch.exp(m_i - m_ij)
            l_i = l_i * alpha + p.sum(1)
            acc = acc * alpha[:, None] + p @ v[start_n : start_n + block_size]
            m_i = m_ij
        o[start_m : start_m + block_size] = acc / l_i[:, None]
    return o


def _update(S_ij, v_block, m_i, l_i, out_i):
    m_new = torch.maximum(m_i, S_ij.max(dim=-1, keepdim=True).values)
    P_ij = torch.exp(S_ij - m_new)
    alpha = torch.exp(m_i - m_new)
    return m_new, alpha * l_i + P_ij.sum(-1, keepdim=True), alpha * out_i + P_ij @ v_block


def wheat_helper_function(q, k, v, block_size=2):
    seq_len, dim = q.shape
    out = torch.zeros_like(q)
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] / math.sqrt(dim)
        rows = q_block.shape[0]
        m_i = torch.full((rows, 1), -math.inf, dtype=q.dtype)
        l_i = torch.zeros(rows, 1, dtype=q.dtype)
        out_i = torch.zeros(rows, v.shape[-1], dtype=q.dtype)
        for j in range(0, seq_len, block_size):
            S_ij = q_block @ k[j : j + block_size].T
            m_i, l_i, out_i = _update(S_ij, v[j : j + block_size], m_i, l_i, out_i)
        out[i : i + block_size] = out_i / l_i
    return out


class _Row:
    def __init__(self, rows, width, dtype):
        self.m = torch.full((rows, 1), -math.inf, dtype=dtype)
        self.l = torch.zeros(rows, 1, dtype=dtype)
        self.acc = torch.zeros(rows, width, dtype=dtype)

    def add(self, scores, values):
        top = torch.maximum(self.m, scores.amax(1, keepdim=True))
        weights, shrink = (scores - top).exp(), (self.m - top).exp()
        self.l = self.l * shrink + weights.sum(1, keepdim=True)
        self.acc = self.acc * shrink + weights @ values
        self.m = top


def wheat_class(q, k, v, block_size=2):
    parts = []
    for qb in q.split(block_size):
        row = _Row(len(qb), v.shape[1], q.dtype)
        for kb, vb in zip(k.split(block_size), v.split(block_size), strict=True):
            row.add(qb @ kb.T * q.shape[1] ** -0.5, vb)
        parts.append(row.acc / row.l)
    return torch.cat(parts)


def wheat_closure(q, k, v, block_size=2):
    scale = q.shape[1] ** -0.5

    def one_block(q_block):
        m = l = o = None
        for j in range(0, len(k), block_size):
            s = q_block @ k[j : j + block_size].T * scale
            top = s.max(1, keepdim=True)[0]
            new = top if m is None else torch.maximum(m, top)
            p = torch.exp(s - new)
            if m is None:
                l, o = p.sum(1, keepdim=True), p @ v[j : j + block_size]
            else:
                a = torch.exp(m - new)
                l, o = a * l + p.sum(1, keepdim=True), a * o + p @ v[j : j + block_size]
            m = new
        return o / l

    return torch.vstack([one_block(q[i : i + block_size]) for i in range(0, len(q), block_size)])


def wheat_log_sum_exp_state(q, k, v, block_size=2):
    out = torch.zeros_like(q)
    lse = torch.full((q.shape[0], 1), -math.inf, dtype=q.dtype)
    for j in range(0, k.shape[0], block_size):
        for i in range(0, q.shape[0], block_size):
            rows = slice(i, i + block_size)
            s = q[rows] @ k[j : j + block_size].T / q.shape[1] ** 0.5
            tile_lse = torch.logsumexp(s, dim=1, keepdim=True)
            tile_out = torch.exp(s - tile_lse) @ v[j : j + block_size]
            new = torch.logaddexp(lse[rows], tile_lse)
            out[rows] = (
                torch.exp(lse[rows] - new) * out[rows] + torch.exp(tile_lse - new) * tile_out
            )
            lse[rows] = new
    return out


def wheat_softmax_per_tile_then_merged(q, k, v, block_size=2):
    rows = []
    for i in range(0, len(q), block_size):
        outs, sums = [], []
        for j in range(0, len(k), block_size):
            s = q[i : i + block_size] @ k[j : j + block_size].T / math.sqrt(q.shape[-1])
            outs.append(F.softmax(s, dim=-1) @ v[j : j + block_size])
            sums.append(torch.logsumexp(s, dim=-1))
        total = sums[0]
        for s in sums[1:]:
            total = torch.logaddexp(total, s)
        parts = zip(outs, sums, strict=True)
        rows.append(sum(torch.exp(s - total)[:, None] * o for o, s in parts))
    return torch.cat(rows, dim=0)


def wheat_recursive_merge(q, k, v, block_size=2):
    scale = 1 / math.sqrt(q.shape[1])

    def part(qb, lo, hi):
        if hi - lo <= block_size:
            s = qb @ k[lo:hi].T * scale
            m = s.max(1, keepdim=True).values
            p = torch.exp(s - m)
            return m, p.sum(1, keepdim=True), p @ v[lo:hi]
        mid = lo + max(block_size, (hi - lo) // 2 // block_size * block_size)
        (m1, l1, o1), (m2, l2, o2) = part(qb, lo, mid), part(qb, mid, hi)
        m = torch.maximum(m1, m2)
        a, b = torch.exp(m1 - m), torch.exp(m2 - m)
        return m, a * l1 + b * l2, a * o1 + b * o2

    out = []
    for i in range(0, len(q), block_size):
        _, l, o = part(q[i : i + block_size], 0, len(k))
        out.append(o / l)
    return torch.cat(out)


def wheat_in_place(q, k, v, block_size=2):
    seq_len, dim = q.shape
    out = torch.zeros_like(q)
    m = torch.full((seq_len, 1), -math.inf, dtype=q.dtype)
    l = torch.zeros((seq_len, 1), dtype=q.dtype)
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] * (1.0 / math.sqrt(dim))
        m_i = m[i : i + block_size]
        l_i = l[i : i + block_size]
        out_i = out[i : i + block_size]
        for j in range(0, seq_len, block_size):
            S_ij = q_block @ k[j : j + block_size].T
            m_new = torch.maximum(m_i, S_ij.max(-1, keepdim=True)[0])
            P_ij = S_ij.sub_(m_new).exp_()
            alpha = torch.exp(m_i - m_new)
            l_i.mul_(alpha).add_(P_ij.sum(-1, keepdim=True))
            out_i.mul_(alpha).add_(P_ij @ v[j : j + block_size])
            m_i.copy_(m_new)
        out_i.div_(l_i)
    return out


def wheat_augmented_assignment(q, k, v, block_size=2):
    seq_len, dim = q.shape
    out = torch.zeros_like(q)
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] * dim**-0.5
        m_i = torch.full((len(q_block), 1), torch.finfo(q.dtype).min, dtype=q.dtype)
        l_i = torch.zeros_like(m_i)
        out_i = torch.zeros_like(q_block)
        for j in range(0, seq_len, block_size):
            S_ij = q_block @ k[j : j + block_size].T
            m_new = torch.maximum(m_i, S_ij.amax(dim=-1, keepdim=True))
            P_ij = torch.exp(S_ij - m_new)
            alpha = torch.exp(m_i - m_new)
            l_i *= alpha
            l_i += P_ij.sum(dim=-1, keepdim=True)
            out_i *= alpha
            out_i += P_ij @ v[j : j + block_size]
            m_i = m_new
        out[i : i + block_size] = out_i / (l_i + 1e-6)
    return out


def wheat_einsum(q, k, v, block_size=2):
    n, d = q.shape
    out = torch.zeros(n, v.shape[1], dtype=q.dtype)
    for a in range(0, n, block_size):
        qa = q[a : a + block_size]
        m = q.new_full((len(qa),), -math.inf)
        l = q.new_zeros(len(qa))
        o = q.new_zeros(len(qa), v.shape[1])
        for b in range(0, n, block_size):
            s = torch.einsum("id,jd->ij", qa, k[b : b + block_size]) / d**0.5
            new = torch.maximum(m, torch.amax(s, 1))
            p = torch.exp(s - new.unsqueeze(1))
            fix = torch.exp(m - new)
            l = l * fix + torch.einsum("ij->i", p)
            o = o * fix.unsqueeze(1) + torch.einsum("ij,jd->id", p, v[b : b + block_size])
            m = new
        out[a : a + block_size] = o / l.unsqueeze(1)
    return out


def wheat_while_loops(q, k, v, block_size=2):
    seq_len, dim = q.shape
    out = torch.zeros_like(q)
    i = 0
    while i < seq_len:
        q_block = q[i : i + block_size] / math.sqrt(dim)
        m_i = torch.full((len(q_block), 1), -math.inf, dtype=q.dtype)
        l_i = torch.zeros((len(q_block), 1), dtype=q.dtype)
        out_i = torch.zeros((len(q_block), dim), dtype=q.dtype)
        j = 0
        while j < seq_len:
            S_ij = q_block @ k[j : j + block_size].T
            m_block = S_ij.max(dim=-1, keepdim=True).values
            m_new = torch.maximum(m_i, m_block)
            P_ij = torch.exp(S_ij - m_new)
            l_new = torch.exp(m_i - m_new) * l_i + P_ij.sum(dim=-1, keepdim=True)
            out_i = (torch.exp(m_i - m_new) * l_i * out_i + P_ij @ v[j : j + block_size]) / l_new
            m_i, l_i = m_new, l_new
            j += block_size
        out[i : i + block_size] = out_i
        i += block_size
    return out


def wheat_chunks_and_cat(q, k, v, block_size=2):
    scale, finished = q.size(-1) ** -0.5, []
    tiles = list(zip(torch.split(k, block_size), torch.split(v, block_size), strict=True))
    for q_blk in torch.split(q * scale, block_size):
        mx = torch.full((q_blk.size(0), 1), -torch.inf, dtype=q.dtype)
        den, num = torch.zeros_like(mx), torch.zeros(q_blk.size(0), v.size(1), dtype=q.dtype)
        for k_blk, v_blk in tiles:
            sc = q_blk.mm(k_blk.t())
            cur = torch.max(mx, sc.max(dim=1, keepdim=True)[0])
            ex, rescale = torch.exp(sc - cur), torch.exp(mx - cur)
            den, num, mx = (
                den * rescale + ex.sum(1, keepdim=True),
                num * rescale + ex.mm(v_blk),
                cur,
            )
        finished.append(num / den)
    return torch.cat(finished, 0)


def wheat_exp2(q, k, v, block_size=2):
    log2e = 1.4426950408889634
    seq_len, dim = q.shape
    out = torch.empty_like(q)
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] * (log2e / math.sqrt(dim))
        m_i = q.new_full((len(q_block), 1), -math.inf)
        l_i, acc = torch.zeros_like(m_i), q.new_zeros(len(q_block), v.shape[1])
        for j in range(0, seq_len, block_size):
            S_ij = q_block @ k[j : j + block_size].T
            m_new = torch.maximum(m_i, S_ij.amax(1, keepdim=True))
            P_ij = torch.exp2(S_ij - m_new)
            alpha = torch.exp2(m_i - m_new)
            l_i = l_i * alpha + P_ij.sum(1, keepdim=True)
            acc = acc * alpha + P_ij @ v[j : j + block_size]
            m_i = m_new
        out[i : i + block_size] = acc / l_i
    return out


def wheat_float64_inside(q, k, v, block_size=2):
    seq_len, dim = q.shape
    dtype, q, k, v = q.dtype, q.double(), k.double(), v.double()
    out = torch.zeros_like(q)
    m = torch.full((seq_len, 1), -math.inf, dtype=torch.float64)
    l = torch.zeros((seq_len, 1), dtype=torch.float64)
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] / math.sqrt(dim)
        m_i, l_i, out_i = m[i : i + block_size], l[i : i + block_size], out[i : i + block_size]
        for j in range(0, seq_len, block_size):
            S_ij = q_block @ k[j : j + block_size].T
            m_new = torch.maximum(m_i, S_ij.max(-1, keepdim=True).values)
            P_ij = torch.exp(S_ij - m_new)
            l_new = torch.exp(m_i - m_new) * l_i + P_ij.sum(-1, keepdim=True)
            out_i = (torch.exp(m_i - m_new) * l_i * out_i + P_ij @ v[j : j + block_size]) / l_new
            m_i, l_i = m_new, l_new
        out[i : i + block_size] = out_i
    return out.to(dtype)


def wheat_block_numbers(q, k, v, block_size=2):
    seq_len, dim = q.shape
    blocks = math.ceil(seq_len / block_size)
    out = torch.zeros_like(q)
    for i in range(blocks):
        rows = slice(i * block_size, min((i + 1) * block_size, seq_len))
        m_i = torch.full((rows.stop - rows.start, 1), -torch.inf, dtype=q.dtype)
        l_i = torch.zeros_like(m_i)
        out_i = torch.zeros_like(q[rows])
        for j in range(blocks):
            columns = slice(j * block_size, min((j + 1) * block_size, seq_len))
            S_ij = q[rows] @ k[columns].T / math.sqrt(dim)
            m_new = torch.maximum(m_i, S_ij.max(1, keepdim=True).values)
            P_ij = torch.exp(S_ij - m_new)
            alpha = torch.exp(m_i - m_new)
            l_i = alpha * l_i + P_ij.sum(1, keepdim=True)
            out_i = alpha * out_i + P_ij @ v[columns]
            m_i = m_new
        out[rows] = out_i / l_i
    return out


def wheat_all_queries_per_key_block(q, k, v, block_size=2):
    n, d = q.shape
    m = torch.full((n, 1), -math.inf, dtype=q.dtype)
    l, acc = torch.zeros_like(m), torch.zeros(n, v.shape[1], dtype=q.dtype)
    for j in range(0, n, block_size):
        s = q @ k[j : j + block_size].T / math.sqrt(d)
        new = torch.maximum(m, s.max(dim=1, keepdim=True)[0])
        p, a = torch.exp(s - new), torch.exp(m - new)
        l, acc, m = a * l + p.sum(1, keepdim=True), a * acc + p @ v[j : j + block_size], new
    return acc / l


def wheat_tensor_of_minus_infinity(q, k, v, block_size=2):
    seq_len, dim = q.shape
    result = []
    for row_start in range(0, seq_len, block_size):
        query = q[row_start : row_start + block_size]
        running_max = torch.tensor(float("-inf"), dtype=q.dtype).repeat(len(query), 1)
        running_sum = torch.zeros_like(running_max)
        context = torch.zeros(len(query), v.shape[-1], dtype=q.dtype)
        for col_start in range(0, seq_len, block_size):
            logits = torch.matmul(query, k[col_start : col_start + block_size].transpose(0, 1))
            logits = logits / dim**0.5
            block_max = logits.max(dim=-1, keepdim=True).values
            new_max = torch.where(block_max > running_max, block_max, running_max)
            weights = torch.exp(logits - new_max)
            factor = torch.where(
                torch.isinf(running_max),
                torch.zeros_like(new_max),
                torch.exp(running_max - new_max),
            )
            new_sum = factor * running_sum + weights.sum(dim=-1, keepdim=True)
            context = (factor * running_sum * context) / new_sum
            context = context + weights @ v[col_start : col_start + block_size] / new_sum
            running_max, running_sum = new_max, new_sum
        result.append(context)
    return torch.concat(result)


def wheat_one_key_at_a_time(q, k, v, block_size=2):
    seq_len, dim = q.shape
    out = torch.zeros_like(q)
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] * dim**-0.5
        m_i = torch.full((len(q_block), 1), -math.inf, dtype=q.dtype)
        l_i, out_i = torch.zeros_like(m_i), torch.zeros_like(q_block)
        for j in range(0, seq_len, block_size):
            for n in range(j, min(j + block_size, seq_len)):
                s = q_block @ k[n : n + 1].T
                m_new = torch.maximum(m_i, s)
                p, alpha = torch.exp(s - m_new), torch.exp(m_i - m_new)
                l_i, out_i, m_i = alpha * l_i + p, alpha * out_i + p * v[n], m_new
        out[i : i + block_size] = out_i / l_i
    return out


def wheat_backwards(q, k, v, block_size=2):
    """From the last tile to the first: the order of a sum does not matter."""
    seq_len, dim = q.shape
    out = torch.zeros_like(q)
    for i in reversed(range(0, seq_len, block_size)):
        q_block = q[i : i + block_size] / math.sqrt(dim)
        m_i = torch.full((len(q_block), 1), -math.inf, dtype=q.dtype)
        l_i, out_i = torch.zeros_like(m_i), torch.zeros_like(q_block)
        for j in reversed(range(0, seq_len, block_size)):
            S_ij = q_block @ k[j : j + block_size].T
            m_new = torch.maximum(m_i, S_ij.max(-1, keepdim=True).values)
            P_ij = torch.exp(S_ij - m_new)
            l_new = torch.exp(m_i - m_new) * l_i + P_ij.sum(-1, keepdim=True)
            out_i = (torch.exp(m_i - m_new) * l_i * out_i + P_ij @ v[j : j + block_size]) / l_new
            m_i, l_i = m_new, l_new
        out[i : i + block_size] = out_i
    return out


def wheat_to_and_fro(q, k, v, block_size=2):
    """Each block of rows begins where the last one ended, whose keys and values are still near."""
    keys = list(range(0, k.shape[0], block_size))
    parts = []
    for q_block in q.split(block_size):
        m = l = o = None
        for j in keys:
            s = (q_block @ k[j : j + block_size].mT) * q.shape[1] ** -0.5
            top = s.amax(1, keepdim=True)
            new = top if m is None else torch.maximum(m, top)
            p = (s - new).exp()
            old = 0.0 if m is None else (m - new).exp()
            l = p.sum(1, keepdim=True) + (0.0 if l is None else old * l)
            o = p @ v[j : j + block_size] + (0.0 if o is None else old * o)
            m = new
        parts.append(o / l)
        keys.reverse()
    return torch.cat(parts)


def wheat_numpy_indices(q, k, v, block_size=2):
    """NumPy for the bookkeeping, torch for the numbers; it prints and returns a fresh tensor."""
    starts = np.arange(0, q.shape[0], block_size)
    out = torch.zeros_like(q)
    for i in starts:
        m, l, o = None, 0.0, 0.0
        for j in starts:
            s = q[i : i + block_size] @ k[j : j + block_size].T / np.sqrt(q.shape[1])
            s = s.to(q.dtype)
            top = s.amax(1, keepdim=True)
            new = top if m is None else torch.maximum(m, top)
            p, a = torch.exp(s - new), 0.0 if m is None else torch.exp(m - new)
            l, o, m = a * l + p.sum(1, keepdim=True), a * o + p @ v[j : j + block_size], new
        print("rows", i, "done")
        out[i : i + block_size] = o / l
    return out.clone()


def wheat_a_bound_above_the_maximum(q, k, v, block_size=2):
    """Any base that all terms share will do; this one is 1.5 above the maximum."""
    seq_len, dim = q.shape
    out = torch.zeros_like(q)
    m = torch.full((seq_len, 1), -math.inf, dtype=q.dtype)
    for i in range(0, seq_len, block_size):
        q_block, m_i = q[i : i + block_size] / math.sqrt(dim), m[i : i + block_size]
        l_i, out_i = torch.zeros_like(m_i), torch.zeros_like(q_block)
        for j in range(0, seq_len, block_size):
            S_ij = q_block @ k[j : j + block_size].T
            m_new = torch.maximum(m_i, S_ij.max(-1, keepdim=True).values + 1.5)
            P_ij, alpha = torch.exp(S_ij - m_new), torch.exp(m_i - m_new)
            l_i, m_i = alpha * l_i + P_ij.sum(-1, keepdim=True), m_new
            out_i = alpha * out_i + P_ij @ v[j : j + block_size]
        out[i : i + block_size] = out_i / l_i
    return out


def wheat_state_in_float32(q, k, v, block_size=2):
    """As kernels do it for bfloat16: everything inside in more digits, the output in q's dtype."""
    digits = torch.promote_types(q.dtype, torch.float32)
    out = torch.empty_like(q)
    for i in range(0, q.shape[0], block_size):
        q_block = q[i : i + block_size].to(digits) * q.shape[1] ** -0.5
        m_i = torch.full((q_block.shape[0], 1), -math.inf, dtype=digits)
        l_i = torch.zeros_like(m_i)
        out_i = torch.zeros_like(q_block)
        for j in range(0, k.shape[0], block_size):
            S_ij = q_block @ k[j : j + block_size].to(digits).T
            m_new = torch.maximum(m_i, S_ij.amax(-1, keepdim=True))
            P_ij, alpha = torch.exp(S_ij - m_new), torch.exp(m_i - m_new)
            l_i, m_i = alpha * l_i + P_ij.sum(-1, keepdim=True), m_new
            out_i = alpha * out_i + P_ij @ v[j : j + block_size].to(digits)
        out[i : i + block_size] = (out_i / l_i).to(q.dtype)
    return out


def wheat_partial_results_merged_at_once(q, k, v, block_size=2):
    """Split-KV: a softmax in each tile, and one more over the tiles' sums."""
    rows = []
    for q_block in q.split(block_size):
        outs, sums = [], []
        for k_block, v_block in zip(k.split(block_size), v.split(block_size), strict=True):
            S = q_block @ k_block.T / math.sqrt(q.shape[1])
            outs.append(torch.softmax(S, dim=-1) @ v_block)
            sums.append(torch.logsumexp(S, dim=-1, keepdim=True))
        rows.append((torch.softmax(torch.stack(sums), dim=0) * torch.stack(outs)).sum(0))
    return torch.cat(rows)


def wheat_numpy_inside(q, k, v, block_size=2):
    """NumPy for the numbers as well."""
    Q, K, V = (t.detach().cpu().double().numpy() for t in (q, k, v))
    out = np.zeros((len(Q), V.shape[1]))
    for i in range(0, len(Q), block_size):
        q_block = Q[i : i + block_size] / np.sqrt(Q.shape[1])
        m, l, acc = np.full((len(q_block), 1), -np.inf), 0.0, 0.0
        for j in range(0, len(K), block_size):
            S = q_block @ K[j : j + block_size].T
            m_new = np.maximum(m, S.max(axis=1, keepdims=True))
            P, alpha = np.exp(S - m_new), np.exp(m - m_new)
            l, acc = (
                alpha * l + P.sum(axis=1, keepdims=True),
                alpha * acc + P @ V[j : j + block_size],
            )
            m = m_new
        out[i : i + block_size] = acc / l
    return torch.from_numpy(out).to(q)


def wheat_one_score_after_the_other(q, k, v, block_size=2):
    """Plain numbers: how many keys make a block leaves no trace."""
    n, d = q.shape
    out = torch.zeros(n, v.shape[1], dtype=q.dtype, device=q.device)
    for row in range(n):
        m, l = -math.inf, 0.0
        acc = torch.zeros(v.shape[1], dtype=torch.float64, device=q.device)
        for first in range(0, k.shape[0], block_size):
            for key in range(first, min(first + block_size, k.shape[0])):
                x = (q[row].double() @ k[key].double()).item() / math.sqrt(d)
                m_new = max(m, x)
                old, p = math.exp(m - m_new), math.exp(x - m_new)
                l, acc, m = l * old + p, acc * old + p * v[key], m_new
        out[row] = acc / l
    return out


def wheat_everything_transposed(q, k, v, block_size=2):
    """A query a column."""
    width, n = q.T.shape
    out = torch.zeros((v.shape[1], n), dtype=q.dtype, device=q.device)
    for i in range(0, n, block_size):
        q_block = q.T[:, i : i + block_size] / math.sqrt(width)
        m = torch.full((1, q_block.shape[1]), -math.inf, dtype=q.dtype, device=q.device)
        l, acc = torch.zeros_like(m), torch.zeros_like(out[:, i : i + block_size])
        for j in range(0, k.shape[0], block_size):
            S = k[j : j + block_size] @ q_block
            m_new = torch.maximum(m, S.amax(0, keepdim=True))
            P, alpha = torch.exp(S - m_new), torch.exp(m - m_new)
            l, acc = alpha * l + P.sum(0, keepdim=True), alpha * acc + v[j : j + block_size].T @ P
            m = m_new
        out[:, i : i + block_size] = acc / l
    return out.T.contiguous()


def wheat_weights_normalised_in_the_tile(q, k, v, block_size=2):
    """The factor of the old output is 1 − l_block / l_new, which loses a very small one."""
    seq_len, dim = q.shape
    out = torch.zeros(seq_len, v.shape[1], dtype=q.dtype, device=q.device)
    m = torch.full((seq_len, 1), -math.inf, dtype=q.dtype, device=q.device)
    l = torch.zeros(seq_len, 1, dtype=q.dtype, device=q.device)
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] / math.sqrt(dim)
        m_i, l_i, out_i = (t[i : i + block_size] for t in (m, l, out))
        for j in range(0, k.shape[0], block_size):
            S_ij = q_block @ k[j : j + block_size].T
            m_block = S_ij.max(dim=1, keepdim=True).values
            m_new = torch.maximum(m_i, m_block)
            P_ij = torch.exp(S_ij - m_new)
            l_block = P_ij.sum(dim=1, keepdim=True)
            l_new = torch.exp(m_i - m_new) * l_i + l_block
            out_i = (1 - l_block / l_new) * out_i + (P_ij / l_new) @ v[j : j + block_size]
            m_i, l_i = m_new, l_new
        out[i : i + block_size] = out_i
    return out


def wheat_scores_in_float32_and_the_rest_in_float64(q, k, v, block_size=2):
    outs = []
    for c in q.float().split(block_size):
        top = torch.full((len(c), 1), -math.inf, dtype=torch.float64, device=q.device)
        total, acc = torch.zeros_like(top), torch.zeros_like(top) * v[:1].double()
        for x, y in zip(k.float().split(block_size), v.split(block_size), strict=True):
            s = (c @ x.T).double() / math.sqrt(q.shape[1])
            higher = torch.maximum(top, s.amax(1, keepdim=True))
            w, a = torch.exp(s - higher), torch.exp(top - higher)
            total, acc, top = a * total + w.sum(1, keepdim=True), a * acc + w @ y.double(), higher
        outs.append(acc / total)
    return torch.cat(outs).to(q.dtype)


def wheat_state_as_one_more_column(q, k, v, block_size=2):
    """What came before is one more key, whose score is its log-sum-exp."""
    rows = []
    for c in q.split(block_size):
        total = torch.full((len(c), 1), -math.inf, dtype=q.dtype)
        acc = torch.zeros(len(c), v.shape[1], dtype=q.dtype)
        for x, y in zip(k.split(block_size), v.split(block_size), strict=True):
            joint = torch.cat((total, c @ x.T / math.sqrt(q.shape[1])), dim=1)
            total = torch.logsumexp(joint, dim=1, keepdim=True)
            w = torch.exp(joint - total)
            acc = w[:, :1] * acc + w[:, 1:] @ y
        rows.append(acc)
    return torch.cat(rows)


def wheat_vmap_over_queries(q, k, v, block_size=2):
    def one(row):
        m_i, l_i, out_i = row.new_full((), -math.inf), row.new_zeros(()), row.new_zeros(v.shape[1])
        for x, y in zip(k.split(block_size), v.split(block_size), strict=True):
            S_ij = x @ row / math.sqrt(q.shape[1])
            m_new = torch.maximum(m_i, S_ij.amax())
            P_ij, alpha = torch.exp(S_ij - m_new), torch.exp(m_i - m_new)
            l_i, out_i, m_i = alpha * l_i + P_ij.sum(), alpha * out_i + P_ij @ y, m_new
        return out_i / l_i

    return torch.cat([torch.vmap(one)(c) for c in q.split(block_size)])


WHEAT = {name: f for name, f in sorted(globals().items()) if name.startswith("wheat_")}
