# ---
# edition: en
# saved_by: jupyter
# outcome: graded
# marks: {test-safe-softmax: 15, test-online-softmax: 12, test-online-update: 9, test-merge: 22}
# why: >-
#   Knows the maximum, forgets the correction: overwrites m before the factor is computed,
#   adds the old sum as it is, and weights the outputs without their sums.
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
        m = torch.maximum(m, x_j)
        m_new = m
        l_new = l * torch.exp(m - m_new) + torch.exp(x_j - m_new)
        m, l = m_new, l_new
        ms.append(m)
        ls.append(l)
    y = torch.exp(x - m) / l
    return y, torch.stack(ms), torch.stack(ls)

# %% online-update
def online_update(m, l, x_tile):
    m_block = x_tile.max(dim=-1, keepdim=True).values
    m_new = torch.maximum(m, m_block)
    l_block = torch.exp(x_tile - m_new).sum(dim=-1, keepdim=True)
    l_new = l + l_block
    return m_new, l_new

# %% merge
def merge(state_a, state_b):
    m_a, l_a, O_a = state_a
    m_b, l_b, O_b = state_b
    m = torch.maximum(m_a, m_b)
    base = torch.where(torch.isinf(m), torch.zeros_like(m), m)
    w_a = torch.exp(m_a - base) * l_a
    w_b = torch.exp(m_b - base) * l_b
    l = w_a + w_b
    O = (torch.exp(m_a - base) * O_a + torch.exp(m_b - base) * O_b) / torch.where(l == 0, torch.ones_like(l), l)
    return m, l, O
