# ---
# edition: en
# saved_by: jupyter
# outcome: graded
# marks: {test-todo1: 10, test-todo2: 10, test-todo3: 10, test-todo4: 0, test-todo5: 0, test-todo6: 0, test-whole: 20, test-tiling: 10, test-stability: 10}
# why: >-
#   exp(S_ij) without the maximum, and no correction factor in the sum or in the output: three
#   lines are wrong, TODO 4, 5 and 6. That it overflows on large scores follows from TODO 4.
# ---

# %% flash-forward
def flash_attention_forward_sim(q, k, v, block_size=2):
    seq_len, dim = q.shape
    kv_len, dim_v = v.shape

    out = torch.zeros((seq_len, dim_v), dtype=q.dtype, device=q.device)
    m = torch.full((seq_len, 1), -math.inf, dtype=q.dtype, device=q.device)
    l = torch.zeros((seq_len, 1), dtype=q.dtype, device=q.device)

    scale = 1.0 / math.sqrt(dim)

    for i in range(0, seq_len, block_size):
        q_block = q[i:i+block_size] * scale
        m_i = m[i:i+block_size]
        l_i = l[i:i+block_size]
        out_i = out[i:i+block_size]

        for j in range(0, kv_len, block_size):
            k_block = k[j:j+block_size]
            v_block = v[j:j+block_size]

            S_ij = q_block @ k_block.transpose(-2, -1)
            m_block = torch.max(S_ij, dim=-1, keepdim=True).values
            m_new = torch.maximum(m_i, m_block)
            P_ij = torch.exp(S_ij)
            l_block = P_ij.sum(dim=-1, keepdim=True)
            l_new = l_i + l_block
            out_i = (l_i * out_i + P_ij @ v_block) / l_new
            m_i = m_new
            l_i = l_new

        out[i:i+block_size] = out_i

    return out
