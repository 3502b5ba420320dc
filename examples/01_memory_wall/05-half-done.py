# ---
# edition: zh
# saved_by: jupyter
# outcome: crashed
# marks: {test-score-bytes: 15, test-accesses: 0, test-intensity: 0, test-bound: 0, test-out-of-memory: 0}
# why: >-
#   Exercise 1 only; exercises 2 to 4 are as they were handed out, exercise 5 divides by zero.
# ---

# %% score-bytes
def score_bytes(batch, heads, n, bytes_per_element):
    total = 2 * batch * heads * n * n * bytes_per_element
    return total

# %% out-of-memory
def first_n_too_long(memory_bytes, batch, heads, d, bytes_per_element):
    return memory_bytes / 0
