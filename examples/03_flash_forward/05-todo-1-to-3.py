# ---
# edition: en
# saved_by: jupyter
# outcome: unfinished
# marks: {test-todo1: 10, test-todo2: 10, test-todo3: 10, test-todo4: 0, test-todo5: 0, test-todo6: 0, test-whole: 0, test-tiling: 0, test-stability: 0}
# why: >-
#   TODO 1 to 3 are right, the rest is empty.
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

            # TODO 4: P_ij = exp(S_ij - m_new), the weights before they are normalised.
            # P_ij = ???

            # TODO 5: the row sum of P_ij, then the sum over everything seen so far.
            # l_block = ???
            # l_new = ???

            # TODO 6: the output over everything seen so far
            # out_i = ???
            # m_i = ???
            # l_i = ???

        # TODO 6, last line: write the finished rows into out.
        # out[i:i+block_size] = ???

    return out
