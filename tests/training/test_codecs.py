"""FP8 from a CPU: what comes back, how many bytes it takes, what it must not swallow."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training.codecs import RowWiseFP8, WireCounter, codec_registry
from training.config import QCommsConfig
from training.recipes import FRM_CPU_2RANK

ROW = 32


def round_trip(values: torch.Tensor, row: int = ROW) -> torch.Tensor:
    codec = RowWiseFP8(row)
    return codec.decode(codec.encode(values)).view_as(values)


@given(seed=st.integers(0, 2**31), exponent=st.integers(-20, 20))
def test_values_come_back_within_half_a_step_of_the_format(seed: int, exponent: int) -> None:
    values = torch.randn(6, ROW, generator=torch.Generator().manual_seed(seed)) * 10.0**exponent
    largest = values.abs().amax(1, keepdim=True)
    # e4m3 keeps three bits behind the leading one: half a step is 2**-4 of the value. Below the smallest
    # normal number, 2**-6, steps are 2**-9 of the scale, and the row's largest value is put at 448.
    allowed = torch.maximum(values.abs() * 2**-4, largest / 448 * 2**-10)
    assert bool(((round_trip(values) - values).abs() <= allowed * 1.001).all())


def test_a_rows_scale_is_its_own() -> None:
    # With one scale for all, the second row would be lost: 1e-6 is below 1e3 / 448 * 2**-10.
    values = torch.stack([torch.full((ROW,), 1e3), torch.full((ROW,), 1e-6)])
    assert torch.allclose(round_trip(values), values, rtol=1e-6)


def test_zeros_stay_zero_and_a_nan_stays_visible() -> None:
    values = torch.zeros(2, ROW)
    values[1, 3] = float("nan")
    back = round_trip(values)
    assert torch.equal(back[0], values[0])
    assert bool(back[1].isnan().any())


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_size_is_known_before_encoding(rows: int) -> None:
    codec = RowWiseFP8(ROW)
    encoded = codec.encode(torch.ones(rows, ROW))
    # 32 values: 32 bytes and a scale of 4.
    assert encoded.numel() == rows * 36 == codec.calc_quantized_size(rows * ROW)
    assert encoded.dtype == codec.quantized_dtype


def test_a_cut_row_is_refused() -> None:
    with pytest.raises(ValueError, match="33 values are no whole rows of 32"):
        RowWiseFP8(ROW).calc_quantized_size(33)


# A rank of frm_cpu_2rank hands over 512 examples x 2 tables x 16 values: 16,384 values.
@pytest.mark.parametrize(
    ("chosen", "sent_bytes"),
    [("fp32", 16_384 * 4), ("fp16", 16_384 * 2), ("bf16", 16_384 * 2), ("fp8", 16_384 // 16 * 20)],
)
def test_what_is_encoded_is_counted_by_direction(chosen: str, sent_bytes: int) -> None:
    config = dataclasses.replace(FRM_CPU_2RANK, qcomms=QCommsConfig(forward=chosen))
    counter = WireCounter()
    codecs = codec_registry(config, counter)["POOLED_EMBEDDINGS_ALL_TO_ALL"]

    codecs.forward.encode(torch.ones(512, 32))

    described = counter.describe(config, steps=1)
    assert described["forward"] == {"format": chosen, "payload_bytes_per_step": sent_bytes}
    assert described["backward"] == {"format": "fp32", "payload_bytes_per_step": 0}
