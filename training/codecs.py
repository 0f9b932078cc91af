"""Number formats of embeddings and their gradients on the wire, and how many bytes travelled.

On a GPU these are FBGEMM's codecs. Its FP8 does not work on a CPU, so there an own codec does the same: FP8
values with one scale per row.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import torch
from torch.profiler import record_function
from torchrec.distributed.fbgemm_qcomm_codec import CommType, QCommsConfig, get_qcomm_codecs
from torchrec.distributed.types import CommOp, NoOpQuantizedCommCodec, QuantizedCommCodecs

from training.config import Config

_LARGEST = torch.finfo(torch.float8_e4m3fn).max
_SCALE_BYTES = 4

Registry = dict[str, QuantizedCommCodecs]


class RowWiseFP8:
    """Rows of ``row`` values as ``row`` bytes of FP8 (e4m3) behind a float32 scale, as one string of bytes.

    Its annotations are those of FBGEMM's codecs, so that a trace tells the same on both devices.

    TorchRec cuts what it sends between ranks only at multiples of a table's dim, so a row that divides the
    dims is never cut. ``row + 4`` bytes stand for ``4 * row``: 3.56 times fewer for 32 values, 3.88 for 128.
    """

    quantized_dtype = torch.uint8

    def __init__(self, row: int) -> None:
        self.row = row

    def encode(self, input_tensor: torch.Tensor, ctx: Any = None) -> torch.Tensor:  # noqa: ARG002
        """Return the rows of ``input_tensor`` as bytes."""
        with record_function("## encoder fp8 None ##"):
            rows = input_tensor.reshape(-1, self.row).float()
            # A row of zeros needs any scale but zero. A NaN stays: it makes the scale NaN.
            scale = (rows.abs().amax(1, keepdim=True) / _LARGEST).clamp(min=1e-30)
            values = (rows / scale).to(torch.float8_e4m3fn).view(torch.uint8)
            return torch.cat([scale.view(torch.uint8), values], dim=1).flatten()

    def decode(self, input_tensor: torch.Tensor, ctx: Any = None) -> torch.Tensor:  # noqa: ARG002
        """Return the float32 values of bytes that ``encode`` made, [number of values]."""
        with record_function("## decoder fp8 None ##"):
            rows = input_tensor.view(-1, self.row + _SCALE_BYTES)
            scale = rows[:, :_SCALE_BYTES].contiguous().view(torch.float32)
            values = rows[:, _SCALE_BYTES:].contiguous().view(torch.float8_e4m3fn)
            return (values.float() * scale).flatten()

    def calc_quantized_size(self, input_len: int, ctx: Any = None) -> int:  # noqa: ARG002
        """Return the bytes that stand for ``input_len`` values."""
        if input_len % self.row:
            raise ValueError(f"{input_len} values are no whole rows of {self.row}")
        return input_len // self.row * (self.row + _SCALE_BYTES)

    def create_context(self) -> None:
        """Return nothing: a row carries its own scale."""

    def padded_size(
        self,
        input_tensor: torch.Tensor,
        dim_per_rank: list[int],  # noqa: ARG002
        my_rank: int,  # noqa: ARG002
        qcomm_ctx: Any,  # noqa: ARG002
    ) -> tuple[int, int]:
        """Return (width, 0): nothing is padded."""
        return input_tensor.shape[-1], 0


class PlainFP32(NoOpQuantizedCommCodec):
    """Values as they are. TorchRec's own class names no type, and its planner asks for one."""

    @property
    def quantized_dtype(self) -> torch.dtype:
        """Return the type of the values on the wire."""
        return torch.float32


class WireCounter:
    """Bytes that this rank handed to the exchange of embeddings, by direction; its own part included."""

    def __init__(self) -> None:
        self.bytes: dict[str, int] = defaultdict(int)

    def describe(self, config: Config, steps: int) -> dict[str, dict[str, object]]:
        """Return format and mean bytes per step of each direction, for ``run.json``."""
        formats = {"forward": config.qcomms.forward, "backward": config.qcomms.backward}
        return {
            direction: {"format": chosen, "payload_bytes_per_step": self.bytes[direction] / max(steps, 1)}
            for direction, chosen in formats.items()
        }


class _Counted:
    """A codec whose encoded bytes are counted."""

    def __init__(self, codec: Any, counter: WireCounter, direction: str) -> None:
        self._codec, self._counter, self._direction = codec, counter, direction

    def encode(self, input_tensor: torch.Tensor, ctx: Any = None) -> torch.Tensor:
        encoded = self._codec.encode(input_tensor, ctx)
        self._counter.bytes[self._direction] += encoded.numel() * encoded.element_size()
        return encoded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codec, name)


def codec_registry(config: Config, counter: WireCounter) -> Registry:
    """Return TorchRec's registry: codecs of both directions for each kind of exchange."""
    kinds = [CommOp.POOLED_EMBEDDINGS_ALL_TO_ALL, CommOp.SEQUENCE_EMBEDDINGS_ALL_TO_ALL]
    if config.device == "cuda":
        kinds.append(CommOp.POOLED_EMBEDDINGS_REDUCE_SCATTER)  # row-wise sharding
    return {kind.name: _codecs(config, kind, counter) for kind in kinds}


def _codecs(config: Config, kind: CommOp, counter: WireCounter) -> QuantizedCommCodecs:
    chosen = {"forward": config.qcomms.forward, "backward": config.qcomms.backward}
    if kind == CommOp.POOLED_EMBEDDINGS_REDUCE_SCATTER:
        # A sum of FP8 values is no FP8 value; TorchRec falls back in the same way.
        fallback = {"forward": "fp16", "backward": "bf16"}
        chosen = {way: fallback[way] if name == "fp8" else name for way, name in chosen.items()}
    made = {way: _Counted(_codec(config, name, way), counter, way) for way, name in chosen.items()}
    return QuantizedCommCodecs(forward=made["forward"], backward=made["backward"])


def _codec(config: Config, name: str, way: str) -> Any:
    if name == "fp32":
        return PlainFP32()
    row = math.gcd(config.model.table_dim, 128)  # TorchRec cuts no column shard narrower than 128
    if name == "fp8" and config.device == "cpu":
        return RowWiseFP8(row)
    given = {f"{way}_precision": CommType(name)}
    if name == "fp8":
        given["fp8_quantize_dim"] = row
    return getattr(get_qcomm_codecs(QCommsConfig(**given)), way)
