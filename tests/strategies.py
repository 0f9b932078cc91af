"""Hypothesis strategies for jobs: small, valid, and different in everything the analyses look at."""

from hypothesis import strategies as st

from tests.builders import (
    DENSE_ALLREDUCE,
    GRADIENT_A2A,
    KJT_A2A,
    MS,
    POOLED_A2A,
    US,
    CollectiveSpec,
    JobBuilder,
    Late,
)


def collectives() -> st.SearchStrategy[tuple[CollectiveSpec, ...]]:
    """Some of the usual collectives of a step, in their order."""
    usual = (KJT_A2A, POOLED_A2A, GRADIENT_A2A, DENSE_ALLREDUCE)
    kept = st.lists(st.booleans(), min_size=len(usual), max_size=len(usual))
    return kept.map(lambda keep: tuple(c for c, wanted in zip(usual, keep, strict=True) if wanted))


@st.composite
def jobs(draw: st.DrawFn) -> JobBuilder:
    """A job of 1-4 ranks and 3-4 steps with any mixture of troubles."""
    world = draw(st.integers(1, 4))
    rank = st.integers(0, world - 1)
    late = st.builds(Late, rank=rank, ns=st.integers(0, 3 * MS))
    return JobBuilder(
        world_size=world,
        steps=draw(st.integers(3, 4)),
        forward_ns=tuple(draw(st.lists(st.integers(US, 3 * MS), min_size=1, max_size=3))),
        pieces=draw(st.sampled_from([1, 3])),
        collectives=draw(collectives()),
        late=tuple(draw(st.lists(late, max_size=2))),
        input_delay_ns=draw(st.dictionaries(rank, st.integers(0, 20 * MS), max_size=1)),
        host_op_ns=draw(st.sampled_from([5 * US, 400 * US])),
        sync_stall_ns=draw(st.none() | st.integers(2 * US, 2 * MS)),
        clock_ahead_ns=draw(st.dictionaries(rank, st.integers(-5 * MS, 5 * MS), max_size=2)),
        jitter_ns=draw(st.sampled_from([0, 100 * US])),
        seed=draw(st.integers(0, 9)),
        arguments=draw(st.booleans()),
    )
