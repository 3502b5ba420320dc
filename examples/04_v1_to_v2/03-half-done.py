# ---
# edition: en
# saved_by: jupyter
# outcome: unfinished
# marks: {test-v1: 20, test-v2: 25, test-misprint: 0, test-backward: 0}
# why: >-
#   The first two exercises are right, the other two are as they were handed out.
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
