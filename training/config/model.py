"""The model's shape and how its dense part is computed."""

from __future__ import annotations

from dataclasses import dataclass

from training.config.checks import choice, require

INTERACTIONS = ("dot", "transformer")
PRECISIONS = ("fp32", "tf32", "bf16")
COMPILE_BACKENDS = ("inductor", "cudagraphs", "aot_eager", "eager")


@dataclass(frozen=True)
class ModelConfig:
    """Embedding tables, interaction and dense layers."""

    tables: int = 8
    rows: int = 20_000
    """Rows of each table, before ``narrow``."""
    dim: int = 64
    """Values per row, before ``narrow``; FBGEMM wants a multiple of 4."""
    narrow: int = 1
    """k stores the same number of values as dim / k columns and rows * k rows: a lookup returns 1 / k."""
    sequence_tables: int = 0
    """Further tables whose ids form a sequence and are not pooled (``EmbeddingCollection``)."""
    dense_features: int = 13
    interaction: str = "dot"
    transformer_layers: int = 2
    """Layers over the embedded vectors when ``interaction`` is transformer."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the dense layers behind the interaction."""

    def __post_init__(self) -> None:
        require(self.tables >= 1, "model.tables", self.tables, "at least 1")
        require(self.rows >= 2, "model.rows", self.rows, "at least 2")
        require(self.dim >= 4 and self.dim % 4 == 0, "model.dim", self.dim, "a positive multiple of 4")
        require(
            self.narrow >= 1 and self.dim % (4 * self.narrow) == 0,
            "model.narrow",
            self.narrow,
            f"at least 1 and leave model.dim / narrow a multiple of 4 (model.dim is {self.dim})",
        )
        require(self.sequence_tables >= 0, "model.sequence_tables", self.sequence_tables, "0 or more")
        require(self.dense_features >= 1, "model.dense_features", self.dense_features, "at least 1")
        choice("model.interaction", self.interaction, INTERACTIONS)
        require(
            self.transformer_layers >= 1, "model.transformer_layers", self.transformer_layers, "1 or more"
        )
        require(
            len(self.hidden) >= 1 and min(self.hidden, default=0) >= 1,
            "model.hidden",
            self.hidden,
            "one or more widths of at least 1",
        )

    @property
    def table_rows(self) -> int:
        """Rows of a table as it is built."""
        return self.rows * self.narrow

    @property
    def table_dim(self) -> int:
        """Values per row of a table as it is built."""
        return self.dim // self.narrow


@dataclass(frozen=True)
class DenseConfig:
    """How the dense part is computed and its gradients are averaged."""

    compile: bool = False
    """``torch.compile`` of the layers behind the embeddings."""
    compile_backend: str = "inductor"
    """aot_eager and eager generate no code: to find out which part of compiling a problem comes from."""
    precision: str = "fp32"
    """tf32: matrix products in TF32 (GPU only). bf16: autocast of the dense part."""
    ddp_bucket_mb: int = 25
    """Size of DDP's gradient buckets, MiB: smaller ones start earlier, larger ones cost fewer calls."""
    clip_norm: float = 0.0
    """Largest norm of the dense gradients; 0 does not clip."""

    def __post_init__(self) -> None:
        choice("dense.compile_backend", self.compile_backend, COMPILE_BACKENDS)
        choice("dense.precision", self.precision, PRECISIONS)
        require(self.ddp_bucket_mb >= 1, "dense.ddp_bucket_mb", self.ddp_bucket_mb, "at least 1 MiB")
        require(self.clip_norm >= 0, "dense.clip_norm", self.clip_norm, "0 (no clipping) or more")


@dataclass(frozen=True)
class EmulationConfig:
    """Time an accelerator would need, slept instead of computed.

    Ranks that share the cores of one machine would otherwise slow each other down, and a trace of that shows
    the machine and not the job. 0 on a real accelerator.
    """

    forward_ms: float = 0.0
    """Milliseconds slept per forward, spread evenly over the dense layers."""
    backward_ms: float = 0.0
    """Milliseconds slept per backward, spread evenly over the dense layers."""
    lookup_us_per_1k_ids: float = 0.0
    """Microseconds slept per thousand ids that a rank looks up: what makes an overloaded owner slow."""

    def __post_init__(self) -> None:
        for name in ("forward_ms", "backward_ms", "lookup_us_per_1k_ids"):
            value = getattr(self, name)
            require(value >= 0, f"emulation.{name}", value, "0 or more")
