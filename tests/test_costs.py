"""The costs: formulas against the papers' numbers, and against counting tile by tile."""

import pytest

from flashcourse import costs


def test_standard_attention_moves_four_n_squared_and_four_n_d():
    # FA1, Algorithm 0: Q, K in, S out, S in, P out, P, V in, O out.
    assert costs.standard_traffic(8, 4) == 4 * 64 + 4 * 32
    assert costs.count_standard(8, 4).total == costs.standard_traffic(8, 4)


@pytest.mark.parametrize(
    "N, d, Br, Bc", [(8, 4, 2, 2), (8, 4, 4, 2), (5, 3, 3, 2), (64, 8, 16, 48)]
)
def test_counting_tile_by_tile_gives_the_formulas(N, d, Br, Bc):
    assert costs.count_flash1(N, d, Br, Bc).total == costs.flash1_traffic(N, d, Bc)
    assert costs.count_flash2(N, d, Br, Bc).total == costs.flash2_traffic(N, d, Br)


def test_flash1_block_sizes_are_those_of_algorithm_1():
    assert costs.flash1_block_sizes(98304, 64) == (64, 384)
    assert costs.flash1_block_sizes(49152, 128) == (96, 96)
    with pytest.raises(ValueError, match="at least 4·d"):
        costs.flash1_block_sizes(100, 64)


def test_flash1_moves_6_times_less_at_1024_and_nothing_less_at_4096_with_little_sram():
    _, Bc = costs.flash1_block_sizes(98304, 64)
    assert costs.standard_traffic(1024, 64) / costs.flash1_traffic(1024, 64, Bc) == pytest.approx(
        6.1, abs=0.05
    )
    _, Bc = costs.flash1_block_sizes(49152, 128)
    assert costs.standard_traffic(4096, 128) / costs.flash1_traffic(4096, 128, Bc) == pytest.approx(
        1.00, abs=0.005
    )


def test_flash1_traffic_falls_as_one_over_sram():
    # Theorem 2 of FA1: Θ(N²d²/M). Twice the SRAM, about half the traffic.
    small, large = (costs.flash1_traffic(16384, 64, costs.flash1_block_sizes(M, 64)[1])
                    for M in (2**15, 2**16))  # fmt: skip
    assert small / large == pytest.approx(2, rel=0.02)


def test_flops_reproduce_the_speed_of_flash3_table_2():
    # FA3, Table 2: batch 4, length 8448, 16 heads, dim 128: 3.538 ms, 661 TFLOP/s.
    flops = costs.forward_flops(8448, 128, batch=4, heads=16)
    assert flops / 3.538e-3 / 1e12 == pytest.approx(661, abs=0.5)
    assert costs.forward_flops(8448, 128, 4, 16, causal=True) * 2 == flops
    assert costs.backward_flops(8448, 128, 4, 16) == 2.5 * flops


def test_scores_of_one_head_at_4096_are_32_mebibytes_in_half_precision():
    assert costs.score_bytes(4096) == 2 * 4096**2 == 32 * 2**20
    assert costs.score_bytes(4096, heads=16, batch=64, dtype="float32") == 64 * 16 * 4 * 4096**2
    assert costs.qkvo_bytes(4096, 64) == 4 * 4096 * 64 * 2


def test_a100_numbers_are_those_that_the_papers_quote():
    a100 = costs.HARDWARE["A100-40GB"]
    assert a100.tensor_flops == 312e12  # FA2, §2.1
    assert a100.sms == 108 and a100.sram_per_sm_bytes == 192 * 1024  # FA1, §2.1
    assert 1.5e12 <= a100.hbm_bytes_per_s <= 2.0e12  # FA1, §2.1
    assert costs.HARDWARE["H100"].tensor_flops == 989e12  # FA3, §2.2
    assert costs.HARDWARE["B200"].sms == 148  # FA4


def test_the_roof_turns_flat_at_the_ridge():
    for gpu in costs.HARDWARE.values():
        assert costs.attainable_flops(gpu.ridge_flops_per_byte * 2, gpu) == gpu.tensor_flops
        assert costs.attainable_flops(1.0, gpu) == gpu.hbm_bytes_per_s
        assert gpu.source
