# ---
# edition: zh
# saved_by: jupyter
# outcome: graded
# marks: {test-score-bytes: 10, test-accesses: 20, test-intensity: 0, test-bound: 10, test-out-of-memory: 8}
# why: >-
#   Forgets the heads in exercises 1 and 5, counts a multiply-add as one operation in
#   exercise 3, and adds the two times in exercise 4.
# ---

# %% score-bytes
def score_bytes(batch, heads, n, bytes_per_element):
    total = 2 * batch * n * n * bytes_per_element
    return total

# %% standard-accesses
def standard_accesses(n, d):
    scores = (2 * n * d, n * n)
    softmax = (n * n, n * n)
    output = (n * n + n * d, n * d)
    return {"scores": scores, "softmax": softmax, "output": output}

# %% attention-intensity
def attention_intensity(n, d, bytes_per_element):
    flops = 2 * n * n * d
    moved = (4 * n * n + 4 * n * d) * bytes_per_element
    intensity = flops / moved
    return intensity

# %% roofline
def roofline(flops, bytes_moved, peak_flops, bandwidth):
    compute = flops / peak_flops
    memory = bytes_moved / bandwidth
    bound = "memory" if memory > compute else "compute"
    seconds = memory + compute
    return bound, seconds

# %% out-of-memory
def first_n_too_long(memory_bytes, batch, heads, d, bytes_per_element):
    n = 1
    while batch * (2 * n * n + 4 * n * d) * bytes_per_element <= memory_bytes:
        n += 1
    return n
