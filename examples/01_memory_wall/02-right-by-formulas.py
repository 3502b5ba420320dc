# ---
# edition: zh
# saved_by: colab
# outcome: graded
# marks: {test-score-bytes: 15, test-accesses: 20, test-intensity: 20, test-bound: 20, test-out-of-memory: 25}
# why: >-
#   Everything right in other ways: formulas in closed form, the intensity compared with the
#   GPU's own, lists for pairs; saved by Colab.
# ---

# %% score-bytes
def score_bytes(batch, heads, n, bytes_per_element):
    entries = batch * heads * n**2
    return (entries + entries) * bytes_per_element

# %% standard-accesses
def standard_accesses(n, d):
    square, tall = n**2, n * d
    return {
        "output": [square + tall, tall],
        "softmax": [square, square],
        "scores": [tall + tall, square],
    }

# %% attention-intensity
def attention_intensity(n, d, bytes_per_element):
    return n * d / (n + d) / bytes_per_element

# %% roofline
def roofline(flops, bytes_moved, peak_flops, bandwidth):
    intensity = flops / bytes_moved
    if intensity < peak_flops / bandwidth:
        return "memory", bytes_moved / bandwidth
    return "compute", flops / peak_flops

# %% out-of-memory
def first_n_too_long(memory_bytes, batch, heads, d, bytes_per_element):
    per_entry = 2 * batch * heads * bytes_per_element
    return math.floor(math.sqrt(d * d + memory_bytes / per_entry) - d) + 1
