# ---
# edition: zh
# saved_by: jupyter
# outcome: graded
# marks: {test-todo1: 10, test-todo2: 10, test-todo3: 10, test-todo4: 10, test-todo5: 10, test-todo6: 10, test-whole: 20, test-tiling: 10, test-stability: 10}
# why: >-
#   Right: a helper function, own variable names, no skeleton left.
# ---

# %% flash-forward
def attend_rows(queries, keys, values, width):
    best = torch.full((len(queries), 1), float("-inf"), dtype=queries.dtype, device=queries.device)
    total = torch.zeros_like(best)
    weighted = queries.new_zeros(len(queries), values.shape[1])
    for key_part, value_part in zip(keys.split(width), values.split(width)):
        score = queries @ key_part.T
        higher = torch.maximum(best, score.amax(1, keepdim=True))
        shrink = (best - higher).exp()
        weight = (score - higher).exp()
        total = total * shrink + weight.sum(1, keepdim=True)
        weighted = weighted * shrink + weight @ value_part
        best = higher
    return weighted / total


def flash_attention_forward_sim(q, k, v, block_size=2):
    factor = q.shape[1] ** -0.5
    return torch.cat([attend_rows(part * factor, k, v, block_size) for part in q.split(block_size)])
