"""The model's shape and how its dense part is computed."""

from __future__ import annotations

from dataclasses import dataclass

from training.config.checks import check_fields, number, require, word

INTERACTIONS = ("dot", "transformer")
PRECISIONS = ("fp32", "tf32", "bf16")
COMPILE_BACKENDS = ("inductor", "cudagraphs", "aot_eager", "eager")
MOST_ROWS = 2_000_000_000
"""The hash of ids (``training/tables.py``) multiplies two of them in 64 bits."""
WIDEST = 1_000_000


@dataclass(frozen=True)
class ModelConfig:
    """Embedding tables, interaction and dense layers."""

    tables: int = number(8, 1, 10_000)
    """Pooled tables (``EmbeddingBagCollection``), with a feature each."""
    rows: int = number(20_000, 2, MOST_ROWS)
    """Rows of each table, before ``narrow``."""
    dim: int = number(64, 4, 65_536)
    """Values per row, before ``narrow``; FBGEMM wants a multiple of 4."""
    narrow: int = number(1, 1, 65_536)
    """k stores the same number of values as dim / k columns and rows * k rows: a lookup returns 1 / k."""
    sequence_tables: int = number(0, 0, 10_000)
    """Further tables whose ids form a sequence and are not pooled (``EmbeddingCollection``)."""
    dense_features: int = number(13, 1, 100_000)
    """Numbers of an example beside its ids."""
    interaction: str = word("dot", INTERACTIONS)
    """dot: all pairwise products of the vectors. transformer: attention over them."""
    transformer_layers: int = number(2, 1, 1_000)
    """Layers over the embedded vectors when ``interaction`` is transformer."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the dense layers behind the interaction."""

    def __post_init__(self) -> None:
        check_fields(self, "model")
        require(self.dim % 4 == 0, "model.dim", self.dim, "a positive multiple of 4")
        require(
            self.dim % (4 * self.narrow) == 0,
            "model.narrow",
            self.narrow,
            f"at least 1 and leave model.dim / narrow a multiple of 4 (model.dim is {self.dim})",
        )
        require(
            len(self.hidden) >= 1 and all(1 <= width <= WIDEST for width in self.hidden),
            "model.hidden",
            self.hidden,
            f"one or more widths of at least 1, at most {WIDEST:,}",
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
    compile_backend: str = word("inductor", COMPILE_BACKENDS)
    """aot_eager and eager generate no code: to find out which part of compiling a problem comes from."""
    precision: str = word("fp32", PRECISIONS)
    """tf32: matrix products in TF32 (GPU only). bf16: autocast of the dense part."""
    ddp_bucket_mb: int = number(25, 1, 100_000)
    """Size of DDP's gradient buckets, MiB: smaller ones start earlier, larger ones cost fewer calls."""
    clip_norm: float = number(0.0, 0)
    """Largest norm of the dense gradients; 0 does not clip."""

    def __post_init__(self) -> None:
        check_fields(self, "dense")


@dataclass(frozen=True)
class EmulationConfig:
    """Time an accelerator would need, slept instead of computed.

    Ranks that share the cores of one machine would otherwise slow each other down, and a trace of that shows
    the machine and not the job. 0 on a real accelerator.
    """

    forward_ms: float = number(0.0, 0, 600_000)
    """Milliseconds slept per forward, spread evenly over the dense layers."""
    backward_ms: float = number(0.0, 0, 600_000)
    """Milliseconds slept per backward, spread evenly over the dense layers."""
    lookup_us_per_1k_ids: float = number(0.0, 0)
    """Microseconds slept per thousand ids that a rank looks up: what makes an overloaded owner slow."""

    def __post_init__(self) -> None:
        check_fields(self, "emulation")
