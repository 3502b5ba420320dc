# ---
# edition: en
# saved_by: jupyter
# outcome: graded
# marks: {test-todo1: 10, test-todo2: 10, test-todo3: 10, test-todo4: 10, test-todo5: 10, test-todo6: 10, test-whole: 20, test-tiling: 10, test-stability: 10}
# why: >-
#   Right: K/V in the outer loop, as in FlashAttention-1; the state goes back at every
#   tile.
# ---

# %% flash-forward
def flash_attention_forward_sim(q, k, v, block_size=2):
    seq_len, dim = q.shape
    kv_len, dim_v = v.shape
    out = torch.zeros((seq_len, dim_v), dtype=q.dtype, device=q.device)
    m = torch.full((seq_len, 1), float("-inf"), dtype=q.dtype, device=q.device)
    l = torch.zeros((seq_len, 1), dtype=q.dtype, device=q.device)
    scale = 1.0 / math.sqrt(dim)

    for j in range(0, kv_len, block_size):
        k_block = k[j:j+block_size]
        v_block = v[j:j+block_size]
        for i in range(0, seq_len, block_size):
            q_block = q[i:i+block_size] * scale
            m_i = m[i:i+block_size].clone()
            l_i = l[i:i+block_size].clone()
            out_i = out[i:i+block_size].clone()

            S_ij = q_block @ k_block.T
            m_block = S_ij.amax(dim=-1, keepdim=True)
            m_new = torch.maximum(m_i, m_block)
            P_ij = torch.exp(S_ij - m_new)
            l_block = P_ij.sum(dim=-1, keepdim=True)
            l_new = torch.exp(m_i - m_new) * l_i + l_block
            out_i = (l_i * torch.exp(m_i - m_new) * out_i + P_ij @ v_block) / l_new

            out[i:i+block_size] = out_i
            m[i:i+block_size] = m_new
            l[i:i+block_size] = l_new
    return out
