# ---
# edition: zh
# saved_by: jupyter
# outcome: graded
# marks: {test-safe-softmax: 10, test-online-softmax: 14, test-online-update: 12, test-merge: 25}
# why: >-
#   No maximum in the safe softmax, a maximum that starts at 0, one maximum for all rows,
#   and a merge that divides −inf − (−inf) through.
# ---

# %% safe-softmax
def safe_softmax(x):
    return torch.exp(x) / torch.exp(x).sum()

# %% online-softmax
def online_softmax(x):
    m = torch.tensor(0.0, dtype=x.dtype, device=x.device)
    l = torch.tensor(0.0, dtype=x.dtype, device=x.device)
    ms, ls = [], []
    for x_j in x:
        m_new = torch.maximum(m, x_j)
        l_new = l * torch.exp(m - m_new) + torch.exp(x_j - m_new)
        m, l = m_new, l_new
        ms.append(m)
        ls.append(l)
    y = torch.exp(x - m) / l
    return y, torch.stack(ms), torch.stack(ls)

# %% online-update
def online_update(m, l, x_tile):
    m_block = x_tile.max()
    m_new = torch.maximum(m, m_block)
    l_block = torch.exp(x_tile - m_new).sum(dim=-1, keepdim=True)
    l_new = l * torch.exp(m - m_new) + l_block
    return m_new, l_new

# %% merge
def merge(state_a, state_b):
    m_a, l_a, O_a = state_a
    m_b, l_b, O_b = state_b
    m = torch.maximum(m_a, m_b)
    l = torch.exp(m_a - m) * l_a + torch.exp(m_b - m) * l_b
    O = (torch.exp(m_a - m) * l_a * O_a + torch.exp(m_b - m) * l_b * O_b) / l
    return m, l, O
