# ---
# edition: zh
# saved_by: jupyter
# outcome: crashed
# marks: {test-safe-softmax: 15, test-online-softmax: 0, test-online-update: 0, test-merge: 0}
# why: >-
#   Exercise 1 is right. In exercise 2 TODO 2 is missing, exercise 3 crashes on the pair
#   that max returns, exercise 4 was not begun.
# ---

# %% safe-softmax
def safe_softmax(x):
    m = x.max()
    l = torch.exp(x - m).sum()
    y = torch.exp(x - m) / l
    return y

# %% online-softmax
def online_softmax(x):
    m = torch.tensor(-math.inf, dtype=x.dtype, device=x.device)
    l = torch.tensor(0.0, dtype=x.dtype, device=x.device)
    ms, ls = [], []
    for x_j in x:
        m_new = torch.maximum(m, x_j)
        m, l = m_new, l_new
        ms.append(m)
        ls.append(l)
    y = torch.exp(x - m) / l
    return y, torch.stack(ms), torch.stack(ls)

# %% online-update
def online_update(m, l, x_tile):
    m_block = x_tile.max(dim=-1, keepdim=True)
    m_new = torch.maximum(m, m_block)
    l_block = torch.exp(x_tile - m_new).sum(dim=-1, keepdim=True)
    l_new = l * torch.exp(m - m_new) + l_block
    return m_new, l_new
