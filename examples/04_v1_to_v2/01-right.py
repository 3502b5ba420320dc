# ---
# edition: en
# saved_by: jupyter
# outcome: graded
# marks: {test-v1: 20, test-v2: 25, test-misprint: 10, test-backward: 30}
# why: >-
#   Right in every exercise.
# ---

# %% flash-v1
def flash_attention_v1_sim(q, k, v, block_q=2, block_kv=2):
    """
    FlashAttention-1, forward (arXiv 2205.14135, Algorithm 1): K/V blocks outside, Q inside.
    q, k, v: (seq_len, dim). Returns out (seq_len, dim) and the HBM elements read and written.
    """
    seq_len, dim = q.shape
    out = torch.zeros_like(q)
    m = torch.full((seq_len, 1), -math.inf, dtype=q.dtype, device=q.device)
    l = torch.zeros((seq_len, 1), dtype=q.dtype, device=q.device)
    scale = 1.0 / math.sqrt(dim)
    read = written = 0

    for j in range(0, seq_len, block_kv):
        k_block = k[j:j+block_kv]
        v_block = v[j:j+block_kv]
        read += k_block.numel() + v_block.numel()

        for i in range(0, seq_len, block_q):
            q_block = q[i:i+block_q] * scale
            m_i, l_i, out_i = m[i:i+block_q], l[i:i+block_q], out[i:i+block_q]
            read += q_block.numel() + m_i.numel() + l_i.numel() + out_i.numel()

            S_ij = q_block @ k_block.T
            m_block = S_ij.max(dim=-1, keepdim=True).values
            P_ij = torch.exp(S_ij - m_block)
            l_block = P_ij.sum(dim=-1, keepdim=True)
            m_new = torch.maximum(m_i, m_block)
            alpha, beta = torch.exp(m_i - m_new), torch.exp(m_block - m_new)
            l_new = alpha * l_i + beta * l_block
            out_new = (l_i * alpha * out_i + beta * (P_ij @ v_block)) / l_new

            out[i:i+block_q] = out_new
            m[i:i+block_q] = m_new
            l[i:i+block_q] = l_new
            written += out_new.numel() + m_new.numel() + l_new.numel()

    return out, read, written

# %% flash-v2
def flash_attention_v2_sim(q, k, v, block_size=2):
    """
    FlashAttention-2, forward (arXiv 2307.08691, Algorithm 1). q: (rows, dim), k: (keys, dim),
    v: (keys, dim_v). Returns out (rows, dim_v) and L = m + log l, (rows, 1).
    """
    rows, dim = q.shape
    keys, dim_v = v.shape
    scale = 1.0 / math.sqrt(dim)
    out = torch.empty((rows, dim_v), dtype=q.dtype, device=q.device)
    L = torch.empty((rows, 1), dtype=q.dtype, device=q.device)

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

# %% misprint
def misprint_errors(q, k, v, block_size=2):
    """
    Returns (error as printed, error corrected, "printed" or "corrected": the right one).
    """
    exact = attention(q, k, v)
    def run(power):
        scale = 1.0 / math.sqrt(q.shape[1])
        out = torch.empty_like(exact)
        for i in range(0, q.shape[0], block_size):
            q_block = q[i:i+block_size] * scale
            m_i = q_block.new_full((q_block.shape[0], 1), -math.inf)
            l_i, out_i = torch.zeros_like(m_i), 0.0
            for j in range(0, k.shape[0], block_size):
                S_ij = q_block @ k[j:j+block_size].T
                m_new = torch.maximum(m_i, S_ij.max(dim=-1, keepdim=True).values)
                P_ij, alpha = torch.exp(S_ij - m_new), torch.exp(m_i - m_new)
                l_i = alpha * l_i + P_ij.sum(dim=-1, keepdim=True)
                out_i = (alpha**power * out_i if j else 0.0) + P_ij @ v[j:j+block_size]
                m_i = m_new
            out[i:i+block_size] = out_i / l_i
        return (out - exact).abs().max().item()

    printed_error, corrected_error = run(-1), run(1)
    right = "corrected"
    return printed_error, corrected_error, right

# %% flash-backward
def flash_attention_backward_sim(q, k, v, out, L, dout, block_size=2):
    """
    The backward pass of FlashAttention: P is recomputed from L (arXiv 2307.08691, Algorithm 2).
    out, dout: (rows, dim_v), L: (rows, 1). Returns dq, dk, dv, shaped like q, k, v.
    """
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
