# ---
# edition: zh
# saved_by: jupyter
# outcome: unfinished
# marks: {test-schedule: 20, test-exp2: 25, test-v4: 0, test-overflow: 0}
# why: >-
#   The first two exercises are right, the other two are as they were handed out.
# ---

# %% two-warpgroups
def two_warpgroups(tiles, qk, exp, pv):
    """
    A schedule as a list of (warpgroup, op, start, end), times in cycles from 0.
    """
    schedule = []
    unit_free = {"tensor": 0.0, "exp": 0.0}
    ready = [0.0, 0.0]

    def run(warpgroup, op, unit, cycles):
        start = max(unit_free[unit], ready[warpgroup])
        unit_free[unit] = ready[warpgroup] = start + cycles
        schedule.append((warpgroup, op, start, start + cycles))

    for warpgroup in (0, 1):
        run(warpgroup, "QK", "tensor", qk)
    for tile in range(tiles):
        for warpgroup in (0, 1):
            run(warpgroup, "exp", "exp", exp)
        for warpgroup in (0, 1):
            run(warpgroup, "PV", "tensor", pv)
            if tile + 1 < tiles:
                run(warpgroup, "QK", "tensor", qk)
    return schedule

# %% exp2-emulated
def exp2_emulated(x):
    """
    2 ** x for a float32 tensor: range reduction and FlashAttention-4's cubic.
    """
    c1, c2, c3 = 0.695146143436, 0.227564394474, 0.077119089663
    x = x.clamp(min=-127.0)
    whole = torch.floor(x)
    fraction = x - whole

    power = ((c3 * fraction + c2) * fraction + c1) * fraction + 1.0

    result = torch.ldexp(power, whole.to(torch.int32))
    return result
