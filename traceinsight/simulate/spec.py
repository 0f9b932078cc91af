"""The specification of a simulated run: what can be set, in which unit, within which range.

Decoded strictly from TOML (:mod:`traceinsight.simulate.load`). The description of every field stands in its
type, where ``docs/simulate.md`` and the error messages take it from.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the TOML file; unknown keys are errors."""


Dtype = Literal["fp32", "bf16", "fp16", "fp8", "int8"]


class Cluster(_Section, frozen=True):
    """Machines and network. Peak rates come from ``traceinsight.base.hardware`` unless overridden."""

    nodes: Annotated[int, Meta(ge=1, le=4096, description="Number of nodes.")] = 1
    gpus_per_node: Annotated[int, Meta(ge=1, le=64, description="GPUs (= ranks) per node.")] = 8
    gpu: Annotated[str, Meta(description="GPU by its name in the datasheet table.")] = "H100"
    network: Annotated[str, Meta(description="Network between nodes by its name in the table.")] = "efa_p5"
    hbm_gbps: (
        Annotated[
            float, Meta(ge=0.001, le=1_000_000, description="Overrides the memory bandwidth of a GPU, GB/s.")
        ]
        | None
    ) = None
    link_gbps: (
        Annotated[
            float,
            Meta(ge=0.001, le=1_000_000, description="Overrides NVLink/xGMI per GPU and direction, GB/s."),
        ]
        | None
    ) = None
    node_gbps: (
        Annotated[
            float, Meta(ge=0.001, le=1_000_000, description="Overrides a node's network per direction, GB/s.")
        ]
        | None
    ) = None
    network_efficiency: (
        Annotated[
            float, Meta(ge=0.001, le=1, description="Overrides the share of the line rate that is reached.")
        ]
        | None
    ) = None
    network_latency_us: (
        Annotated[
            float,
            Meta(ge=0, le=1_000_000, description="Overrides the latency per message to another node, us."),
        ]
        | None
    ) = None
    launch_latency_us: (
        Annotated[float, Meta(ge=0, le=1_000_000, description="Overrides the time from launch to start, us.")]
        | None
    ) = None
    hbm_efficiency: Annotated[
        float, Meta(ge=0.001, le=1, description="Share of the HBM rate that lookups and codecs reach.")
    ] = 0.65
    link_efficiency: Annotated[
        float, Meta(ge=0.001, le=1, description="Share of NVLink/xGMI that collectives inside a node reach.")
    ] = 0.7
    gemm_efficiency: Annotated[
        float, Meta(ge=0.001, le=1, description="Share of the peak TFLOP/s that dense kernels reach.")
    ] = 0.45
    link_latency_us: Annotated[
        float, Meta(ge=0, le=1_000_000, description="Latency per message to one peer inside the node, us.")
    ] = 2.0
    base_latency_us: Annotated[
        float,
        Meta(
            ge=0, le=1_000_000, description="What a collective of no size takes after the last arrival, us."
        ),
    ] = 10.0
    clock_skew_ms: Annotated[
        float, Meta(ge=0, le=60_000, description="Host clocks are off by up to this, either way, ms.")
    ] = 0.0


class Table(_Section, frozen=True):
    """One embedding table, ``[tables.<name>]``, or ``count`` equal ones: ``<name>_0``, ``<name>_1``, ..."""

    count: Annotated[int, Meta(ge=1, le=100_000, description="Number of equal tables.")] = 1
    rows: Annotated[int, Meta(ge=1, le=10**12, description="Rows of each table.")] = 1_000_000
    dim: Annotated[int, Meta(ge=1, le=65_536, description="Values per row.")] = 128
    mean_ids: Annotated[
        float, Meta(gt=0, le=1_000_000, description="Ids looked up per example and table (pooling factor).")
    ] = 10.0
    pooling: Annotated[
        Literal["sum", "none"],
        Meta(description="`sum`: one vector per example and partition is returned; `none`: one per id."),
    ] = "sum"
    zipf: Annotated[
        float, Meta(ge=0, le=4, description="Exponent of the ids' Zipf law; 0: every id is equally likely.")
    ] = 0.0
    module: Annotated[
        str, Meta(min_length=1, description="Tables of one module share a lookup and an all-to-all.")
    ] = "ebc"
    partitions: Annotated[
        int, Meta(ge=1, le=100_000, description="Hash partitions the rows are split into (1: table-wise).")
    ] = 1
    partitions_per_rank: (
        Annotated[float, Meta(gt=0, le=64, description="Partitions per rank of the whole job instead.")]
        | None
    ) = None
    placement: (
        Annotated[Literal["greedy", "round_robin", "modulo"], Meta(description="Overrides the placement.")]
        | None
    ) = None


class Placement(_Section, frozen=True):
    """Which rank of a sharding group owns which partition of which table."""

    policy: Annotated[
        Literal["greedy", "round_robin", "modulo"],
        Meta(
            description="`greedy`: the most expensive partition first, to the least loaded rank; "
            "`round_robin`: one after the other over all tables; `modulo`: partition p to rank p mod ranks."
        ),
    ] = "greedy"
    explicit: Annotated[
        dict[str, tuple[int, ...]],
        Meta(description="Table -> rank (inside the group) of each of its partitions; wins over the policy."),
    ] = {}


class Dense(_Section, frozen=True):
    """The dense part: bottom, interaction, transformer, top."""

    forward_gflop: Annotated[
        float,
        Meta(
            ge=0, le=1_000_000, description="Floating-point operations of a forward pass, GFLOP per example."
        ),
    ] = 1.0
    backward_factor: Annotated[
        float, Meta(ge=0, le=10, description="Backward operations as a multiple of the forward ones.")
    ] = 2.0
    precision: Annotated[
        Literal["bf16", "tf32", "fp32"], Meta(description="Which of the GPU's peak rates counts.")
    ] = "bf16"
    kernels: Annotated[
        int, Meta(ge=1, le=10_000, description="Dense kernels of a forward pass (backward: twice as many).")
    ] = 24
    forward_kernels_us: Annotated[
        tuple[Annotated[float, Meta(gt=0, le=60_000_000)], ...],
        Meta(description="Times of the forward kernels, us, instead of `forward_gflop` and `kernels`."),
    ] = ()
    before_exchange_share: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Share of the dense work that needs no embeddings, and so hides their exchange.",
        ),
    ] = 0.05
    small_kernels: Annotated[
        int, Meta(ge=0, le=100_000, description="Small elementwise kernels per step, beside the dense ones.")
    ] = 120
    small_kernel_us: Annotated[
        float, Meta(gt=0, le=1_000_000, description="How long one of them runs, us.")
    ] = 4.0
    parameters: Annotated[
        int, Meta(ge=0, le=10**12, description="Dense parameters: their gradients are all-reduced in FP32.")
    ] = 50_000_000


class Comms(_Section, frozen=True):
    """What goes over the wire, in which type, and what it costs the kernels beside it."""

    qcomms_forward: Annotated[Dtype, Meta(description="Type of the embeddings on the wire.")] = "fp32"
    qcomms_backward: Annotated[Dtype, Meta(description="Type of their gradients on the wire.")] = "fp32"
    quantize_row: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="`fp8`/`int8`: values that share a scale (8 B each); 0: no scales.",
        ),
    ] = 128
    ddp_bucket_mb: Annotated[
        float,
        Meta(
            ge=0.01, le=1_000_000, description="Dense gradients are all-reduced in buckets of this size, MB."
        ),
    ] = 25.0
    slowdown: Annotated[
        float, Meta(ge=0, le=4, description="How much longer compute takes beside a transfer, share.")
    ] = 0.1


class TwoD(_Section, frozen=True):
    """2D parallelism: the tables are sharded inside groups, and the groups are replicas."""

    group_size: Annotated[int, Meta(ge=1, le=262_144, description="Ranks of a sharding group.")]
    inside_node: Annotated[
        Literal["all_to_all", "all_reduce"],
        Meta(description="Which traffic stays inside a node: the lookup exchange or the replica sync."),
    ] = "all_to_all"
    sync_every: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Replicas are synchronised every so many steps.")
    ] = 1
    sync_share: Annotated[
        float, Meta(gt=0, le=1, description="Share of the weights a sync moves (1: all, as TorchRec).")
    ] = 1.0


class Host(_Section, frozen=True):
    """The CPU side of a rank."""

    launch_us: Annotated[
        float, Meta(gt=0, le=1_000_000, description="Host time per operator with its kernel launch, us.")
    ] = 6.0
    collective_us: Annotated[
        float, Meta(gt=0, le=1_000_000, description="Host time to issue a collective, us.")
    ] = 40.0
    phase_us: Annotated[
        float, Meta(ge=0, le=60_000_000, description="Python between the phases of a step, us per phase.")
    ] = 100.0
    queue_depth: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Launches the driver queues before a launch blocks.")
    ] = 1024
    sync_points: Annotated[
        int, Meta(ge=0, le=1000, description="Synchronisations (`.item()`) in each forward pass.")
    ] = 0
    stall_ms: Annotated[
        float,
        Meta(ge=0, le=600_000, description="Host time lost in each forward pass to something else, ms."),
    ] = 0.0


class Input(_Section, frozen=True):
    """The data loader: workers fill a queue, the training loop takes from it."""

    loader_ms: Annotated[
        float, Meta(ge=0, le=600_000, description="Time per batch of a rank's loader, all workers, ms.")
    ] = 1.0
    prefetch: Annotated[int, Meta(ge=1, le=10_000, description="Batches the loader keeps ready.")] = 2
    fetch_us: Annotated[
        float, Meta(ge=0, le=60_000_000, description="Time to take a batch that is ready, us.")
    ] = 100.0
    dense_features: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000_000,
            description="FP32 features per example that are copied to the GPU beside the ids.",
        ),
    ] = 512


class Straggler(_Section, frozen=True):
    """One rank that takes longer."""

    rank: Annotated[int, Meta(ge=0, description="Which rank.")]
    compute_ms: Annotated[
        float, Meta(ge=0, le=600_000, description="Added to its first lookup kernel of a step, ms.")
    ] = 0.0
    host_ms: Annotated[
        float, Meta(ge=0, le=600_000, description="Its host stands still before forward, ms.")
    ] = 0.0
    input_ms: Annotated[
        float, Meta(ge=0, le=600_000, description="Its loader needs longer for each batch, ms.")
    ] = 0.0
    steps: Annotated[
        tuple[int, ...], Meta(description="Only in these captured steps, counted from 0; empty: in all.")
    ] = ()


class Capture(_Section, frozen=True):
    """What the traces hold, and what is wrong with them."""

    steps: Annotated[int, Meta(ge=1, le=1000, description="Captured steps.")] = 5
    warmup: Annotated[
        int, Meta(ge=0, le=100, description="Steps before the capture, so that it begins in full swing.")
    ] = 2
    first_step: Annotated[int, Meta(ge=0, le=10**9, description="Number of the first `ProfilerStep#`.")] = 25
    first_step_extra_ms: Annotated[
        float,
        Meta(
            ge=0,
            le=600_000,
            description="The host of every rank stands still this long in the first step, ms.",
        ),
    ] = 0.0
    dropped_kernel_share: Annotated[
        float, Meta(ge=0, le=1, description="Share of the GPU events that the profiler loses; seeded.")
    ] = 0.0
    dropped_kernel_ranks: Annotated[
        tuple[int, ...], Meta(description="Ranks whose profiler loses events; empty: all.")
    ] = ()
    missing_ranks: Annotated[tuple[int, ...], Meta(description="Ranks without a trace file.")] = ()
    sequence_numbers: Annotated[
        bool, Meta(description="Whether collectives carry `Seq`, as recent PyTorch writes it.")
    ] = False
    list_limit: Annotated[
        int, Meta(ge=2, le=1_000_000, description="Longer argument lists are cut by `...`, as in PyTorch.")
    ] = 30
    operators: Annotated[bool, Meta(description="Whether CPU operators are written.")] = True
    strays: Annotated[
        bool,
        Meta(
            description="Whether device work launched before the capture is in the trace: without its launch "
            "and without collective arguments, as Kineto writes it."
        ),
    ] = True
    flows: Annotated[
        bool, Meta(description="Whether `ac2g` flow events are written (Perfetto's arrows).")
    ] = True
    gpu_annotations: Annotated[bool, Meta(description="Whether annotations are mirrored on the GPU.")] = False


class Spec(_Section, frozen=True, kw_only=True):
    """A whole run."""

    name: Annotated[str, Meta(min_length=1, description="Name of the run.")] = "simulated"
    seed: Annotated[
        int, Meta(ge=0, le=2**63 - 1, description="Of everything that is drawn: jitter, skew, lost events.")
    ] = 0
    batch_per_rank: Annotated[int, Meta(ge=1, le=10_000_000, description="Examples per step and rank.")] = (
        1024
    )
    pipeline_depth: Annotated[
        Literal[0, 1, 2],
        Meta(
            description="0: everything serial; 1: the next batch's ids are distributed during this step, as "
            "TrainPipelineSparseDist does; 2: its lookup and exchange run ahead, too (one step stale)."
        ),
    ] = 1
    narrowing: Annotated[
        int, Meta(ge=1, le=64, description="Divides every table's dim and multiplies its rows by this.")
    ] = 1
    jitter: Annotated[
        float, Meta(ge=0, le=0.3, description="Relative standard deviation of each kernel's time.")
    ] = 0.01
    cluster: Cluster = Cluster()
    tables: Annotated[dict[str, Table], Meta(min_length=1, description="The embedding tables, by name.")]
    placement: Placement = Placement()
    dense: Dense = Dense()
    comms: Comms = Comms()
    two_d: Annotated[TwoD, Meta(description="Absent: one sharding group over all ranks.")] | None = None
    host: Host = Host()
    input: Input = Input()
    stragglers: Annotated[tuple[Straggler, ...], Meta(description="Ranks that are late on purpose.")] = ()
    capture: Capture = Capture()

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.cluster.nodes * self.cluster.gpus_per_node

    @property
    def group_size(self) -> int:
        """Ranks of one sharding group."""
        return self.two_d.group_size if self.two_d else self.world_size
