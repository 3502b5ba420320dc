# ---
# edition: zh
# saved_by: jupyter
# outcome: graded
# marks: {test-schedule: 20, test-exp2: 25, test-v4: 30, test-overflow: 15}
# why: >-
#   Right in every exercise.
# ---

# %% two-warpgroups
def two_warpgroups(tiles, qk, exp, pv):
    """
    A schedule as a list of (warpgroup, op, start, end), times in cycles from 0.
    """
    schedule = []
    unit_free = {"tensor": 0.0, "exp": 0.0}
    ready = [0.0, 0.0]

    def run(warpgroup, op, unit, cycles):
        start = max(unit_free[unit], ready[warpgroup])
        unit_free[unit] = ready[warpgroup] = start + cycles
        schedule.append((warpgroup, op, start, start + cycles))

    for warpgroup in (0, 1):
        run(warpgroup, "QK", "tensor", qk)
    for tile in range(tiles):
        for warpgroup in (0, 1):
            run(warpgroup, "exp", "exp", exp)
        for warpgroup in (0, 1):
            run(warpgroup, "PV", "tensor", pv)
            if tile + 1 < tiles:
                run(warpgroup, "QK", "tensor", qk)
    return schedule

# %% exp2-emulated
def exp2_emulated(x):
    """
    2 ** x for a float32 tensor: range reduction and FlashAttention-4's cubic.
    """
    c1, c2, c3 = 0.695146143436, 0.227564394474, 0.077119089663
    x = x.clamp(min=-127.0)
    whole = torch.floor(x)
    fraction = x - whole

    power = ((c3 * fraction + c2) * fraction + c1) * fraction + 1.0

    result = torch.ldexp(power, whole.to(torch.int32))
    return result

# %% flash-v4
def flash_attention_v4_sim(q, k, v, block_size=2, tau=8.0):
    """
    FlashAttention-2 with conditional rescaling (arXiv 2603.05451, §3.1.4); tau is in base 2.
    Returns out (rows, dim_v), L (rows, 1) and the number of (row, tile) pairs that rescaled.
    """
    rows, dim = q.shape
    keys, dim_v = v.shape
    scale = math.log2(math.e) / math.sqrt(dim)  # scores in base 2
    out = torch.empty((rows, dim_v), dtype=q.dtype, device=q.device)
    L = torch.empty((rows, 1), dtype=q.dtype, device=q.device)
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

# %% overflow-report
def overflow_report(S, used, offset, tau):
    """
    Returns (share of stored P above 448, largest whole offset that is safe with this tau).
    """
    share = (torch.exp2(S - used + offset) > 448).double().mean().item()
    safe = math.floor(math.log2(448) - tau)
    return share, safe
