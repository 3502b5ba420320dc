# ---
# edition: en
# saved_by: colab
# outcome: graded
# marks: {test-safe-softmax: 15, test-online-softmax: 20, test-online-update: 20, test-merge: 30}
# why: >-
#   Everything right in other ways: a branch on the new maximum, FlashAttention-1's base for
#   the tile, NaNs of empty states repaired at the end; saved by Colab.
# ---

# %% safe-softmax
def safe_softmax(x):
    e = torch.exp(x - torch.amax(x))
    return e / torch.sum(e)

# %% online-softmax
def online_softmax(x):
    m = torch.tensor(-math.inf, dtype=x.dtype, device=x.device)
    l = torch.tensor(0.0, dtype=x.dtype, device=x.device)
    ms, ls = [], []
    for x_j in x:
        if x_j > m:
            m_new, l_new = x_j, l * torch.exp(m - x_j) + 1
        else:
            m_new, l_new = m, l + torch.exp(x_j - m)
        m, l = m_new, l_new
        ms.append(m)
        ls.append(l)
    y = torch.exp(x - m) / l
    return y, torch.stack(ms), torch.stack(ls)

# %% online-update
def online_update(m, l, x_tile):
    m_block = x_tile.max(dim=-1, keepdim=True).values
    m_new = torch.maximum(m, m_block)
    l_block = torch.exp(x_tile - m_block).sum(dim=-1, keepdim=True)
    l_new = l * torch.exp(m - m_new) + l_block * torch.exp(m_block - m_new)
    return m_new, l_new

# %% merge
def merge(state_a, state_b):
    m = torch.maximum(state_a[0], state_b[0])
    w_a, w_b = (torch.nan_to_num(torch.exp(s[0] - m) * s[1]) for s in (state_a, state_b))
    l = w_a + w_b
    return m, l, torch.nan_to_num((w_a * state_a[2] + w_b * state_b[2]) / l)
