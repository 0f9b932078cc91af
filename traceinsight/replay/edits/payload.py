"""Fewer bytes in the embedding exchange: quantized communication and narrower embeddings.

Model: an exchange takes a latency plus a time proportional to its bytes. The latency is that of the
quickest all-to-all of the run. Quantizing adds a codec on both sides, bound by memory bandwidth.
Assumes the network is the bottleneck of the exchange's transfer part (not the peers' kernels).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.collective_names import element_bytes
from traceinsight.replay.edits.edit import NotApplicableError
from traceinsight.replay.edits.shared_link import relief_ns
from traceinsight.replay.facts import Facts, is_embedding_exchange, payload_bytes, wire_bytes_per_value
from traceinsight.replay.graph import Graph, NodeKind
from traceinsight.replay.measured_links import latencies_ns
from traceinsight.trace.trace_set import MatchedCollective

QCOMM_DTYPES = {"fp16": "half", "bf16": "bfloat16", "fp8": "float8_e4m3fn", "int8": "int8"}
DEFAULT_VALUE_BYTES = 4
"""TorchRec exchanges FP32 unless told otherwise; used where the dtype was not recorded."""

DEFAULT_MEMORY_GBPS = 900.0
"""HBM bandwidth of the slowest GPU in use for such jobs (V100); used when the device is unknown."""

ROW_SCALE_SHARE = 0.06
"""FBGEMM's row-wise FP8 and INT8 carry two FP32 per row: 6 % of a row of 128 values."""

MEMORY_EFFICIENCY = 0.7
"""Share of the datasheet's memory bandwidth that streaming kernels typically reach."""


@dataclass(frozen=True, slots=True)
class QuantizedComms:
    """``qcomms=<dtype>``: values travel in fewer bytes; ids keep their integers."""

    dtype: str
    uncertainty: float = 0.15

    @property
    def text(self) -> str:
        """``qcomms=fp8``."""
        return f"qcomms={self.dtype}"

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Scale the transfers that would shrink, and add the codec before and after them."""
        new = (element_bytes(QCOMM_DTYPES[self.dtype]) or 1) * (
            1 + ROW_SCALE_SHARE * (self.dtype in {"fp8", "int8"})
        )
        ratio = np.ones(len(facts.trace_set.collectives) + 1)
        for index, one in enumerate(facts.trace_set.collectives):
            old = wire_bytes_per_value(one) or DEFAULT_VALUE_BYTES
            if is_embedding_exchange(one) and old > new:
                ratio[index] = new / old
        if (ratio == 1).all():
            raise NotApplicableError(f"no exchange of values wider than {self.dtype} was recorded")
        codec_ns = np.array([_codec_ns(one, facts) for one in facts.trace_set.collectives] + [0.0])
        codec_ns[ratio == 1] = 0.0
        edited = scale_transfers(graph, facts, ratio, codec_ns)
        encoded = (graph.nodes.kind == NodeKind.ARRIVAL)[graph.edges.target]
        lag = graph.edges.lag_ns + np.where(
            encoded, codec_ns[graph.nodes.collective[graph.edges.target]], 0.0
        )
        return edited.with_lags(lag)


@dataclass(frozen=True, slots=True)
class NarrowerEmbeddings:
    """``narrow=<k>``: dimension / k and rows x k, so each lookup returns 1/k of the values."""

    factor: float
    uncertainty: float = 0.15

    @property
    def text(self) -> str:
        """``narrow=2``."""
        return f"narrow={self.factor:g}"

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Scale the exchange of vectors and the lookups, which are bound by memory bandwidth."""
        ratio = np.ones(len(facts.trace_set.collectives) + 1)
        chosen = [is_embedding_exchange(one) for one in facts.trace_set.collectives]
        ratio[:-1][chosen] = 1 / self.factor
        lookups = facts.family == "embedding"
        if not any(chosen) and not lookups.any():
            raise NotApplicableError("no embedding exchange or lookup was recorded")
        edited = scale_transfers(graph, facts, ratio, np.zeros(len(ratio)))
        duration = edited.nodes.duration_ns
        return edited.with_durations(np.where(lookups, duration / self.factor, duration))


def scale_transfers(
    graph: Graph,
    facts: Facts,
    ratio: NDArray[np.float64],
    extra_ns: NDArray[np.float64],
    latency_ratio: NDArray[np.float64] | None = None,
) -> Graph:
    """Scale the payload part of each transfer by its collective's ratio, and add a fixed time.

    All three have shape (n_collectives + 1,), the last entry for nodes without a collective.
    ``latency_ratio`` scales the rest of the transfer; None leaves it. Collectives that a shrinking one
    starved get their share of the link back (:func:`relief_ns`).
    """
    nodes = graph.nodes
    extra_ns = extra_ns - relief_ns(facts.trace_set.collectives, ratio)
    transfer = nodes.kind == NodeKind.TRANSFER
    latency = latencies_ns(facts)
    fixed = latency if latency_ratio is None else latency * latency_ratio[nodes.collective]
    payload = np.maximum(nodes.duration_ns - latency, 0.0)
    scaled = fixed + payload * ratio[nodes.collective] + extra_ns[nodes.collective]
    scaled = np.maximum(scaled, 0.0)
    edited = graph.with_durations(np.where(transfer, scaled, nodes.duration_ns))
    return replace(edited, latency_ns=fixed)


def _codec_ns(one: MatchedCollective, facts: Facts) -> float:
    """One side of the codec: the wide values are read and the narrow ones written, once through memory."""
    size = payload_bytes(one)
    if size is None:
        return 0.0
    gbps = (facts.gpu.hbm_gbps if facts.gpu is not None else DEFAULT_MEMORY_GBPS) * MEMORY_EFFICIENCY
    return 1.25 * size / gbps  # bytes / (GB/s) = ns; a quarter more for the narrow side
