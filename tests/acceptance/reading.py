"""How the acceptance tests read a Diagnosis: only through its public contract."""

import re
from collections.abc import Iterable
from typing import Any

SIX_PARTS = (
    "compute_ns",
    "exposed_comm_transfer_ns",
    "exposed_comm_wait_ns",
    "exposed_comm_unsplit_ns",
    "exposed_copy_ns",
    "idle_ns",
)


def blamed(diagnosis: Any) -> list[list[int]]:
    """Each straggler entry's ranks."""
    return [sorted(entry.ranks) for entry in diagnosis.stragglers]


def rules(diagnosis: Any) -> list[str]:
    """Ids of the findings, in their order."""
    return [finding.rule for finding in diagnosis.findings]


def exposed_comm(row: Any) -> int:
    """Exposed communication of a partition row, however it was split."""
    return row.exposed_comm_transfer_ns + row.exposed_comm_wait_ns + row.exposed_comm_unsplit_ns


def by_rank_and_step(rows: Iterable[Any]) -> dict[tuple[int, int], Any]:
    """Rows keyed by (rank, step); a duplicate is an error of its own."""
    keyed: dict[tuple[int, int], Any] = {}
    for row in rows:
        assert (row.rank, row.step) not in keyed, f"two rows for rank {row.rank}, step {row.step}"
        keyed[row.rank, row.step] = row
    return keyed


def assert_partition_adds_up(diagnosis: Any) -> None:
    """Six parts make the window and the causes make the idle time, to the nanosecond."""
    from traceinsight.diagnosis import CAUSES  # noqa: PLC0415  late, so that collecting needs no product

    for row in diagnosis.partition:
        where = f"rank {row.rank}, step {row.step}"
        parts = {name: getattr(row, name) for name in SIX_PARTS}
        assert min(parts.values()) >= 0, where
        assert sum(parts.values()) == row.window_ns, where
        assert sum(row.idle_by_cause_ns.values()) == row.idle_ns, where
        assert min(row.idle_by_cause_ns.values(), default=0) >= 0, where
        assert set(row.idle_by_cause_ns) <= set(CAUSES), where


def assert_useful(diagnosis: Any) -> None:
    """What every answer must have: a verdict, and partitions that add up."""
    assert diagnosis.verdict.strip()
    assert_partition_adds_up(diagnosis)


def prose(diagnosis: Any) -> list[str]:
    """Every sentence a person reads about stragglers and findings."""
    texts = [entry.detail for entry in diagnosis.stragglers]
    for finding in diagnosis.findings:
        texts += [finding.title, finding.action, *(e.where for e in finding.evidence)]
    return [s for text in texts for s in re.split(r"(?<=[.;!?])\s+", text)]


def lengths_ms(sentence: str) -> list[float]:
    """Every length a sentence names, in milliseconds."""
    factor = {"s": 1000.0, "ms": 1.0, "us": 0.001, "µs": 0.001, "μs": 0.001}
    found = re.findall(r"(\d+(?:\.\d+)?)\s*(ms|us|µs|μs|s)\b", sentence)
    return [float(number) * factor[unit] for number, unit in found]


def said(diagnosis: Any) -> str:
    """Everything the answer says about its data and its limits, in lower case."""
    quality = [f"{q.code} {q.message} {q.file}" for q in diagnosis.data_quality]
    limits = [f"{n.rule} {n.reason} {n.capture_hint}" for n in diagnosis.not_judged]
    dropped = [f"step {d.step} {d.reason}" for d in diagnosis.run.dropped_steps]
    return "\n".join(quality + limits + dropped).lower()
