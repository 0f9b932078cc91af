"""The whole result of an analysis."""

from __future__ import annotations

from msgspec import field

from traceinsight.diagnosis.advice import CleanRule, Finding, NotJudged, RoadmapEntry
from traceinsight.diagnosis.measurements import (
    AllToAllMatrix,
    Clock,
    Collective,
    CommunicationRow,
    ForwardShare,
    GroupLink,
    KernelFamilyRow,
    Partition,
    PhaseRow,
    StepTime,
    Straggler,
)
from traceinsight.diagnosis.prediction import Replay
from traceinsight.diagnosis.run import DataQuality, Generator, Run, Struct
from traceinsight.diagnosis.shards import LoadBalance, RankLoad, ShardRow

SCHEMA_VERSION = 1


class Diagnosis(Struct, frozen=True):
    """The typed waist between the analyses and everything that shows them."""

    generator: Generator
    run: Run
    verdict: str
    step_times: list[StepTime]
    partition: list[Partition]
    phases: list[PhaseRow]
    forward: list[ForwardShare]
    communication: list[CommunicationRow]
    collectives: list[Collective]
    clocks: list[Clock]
    stragglers: list[Straggler]
    kernels: list[KernelFamilyRow]
    findings: list[Finding]
    roadmap: list[RoadmapEntry]
    clean: list[CleanRule]
    not_judged: list[NotJudged]
    data_quality: list[DataQuality]
    replay: Replay | None = None  # None in documents of versions that did not replay
    all_to_all_matrix: list[AllToAllMatrix] = field(default_factory=list)  # empty: no split sizes
    links: list[GroupLink] = field(default_factory=list)  # by process group
    shards: list[ShardRow] = field(default_factory=list)
    rank_loads: list[RankLoad] = field(default_factory=list)
    load_balance: list[LoadBalance] = field(default_factory=list)
    schema_version: int = SCHEMA_VERSION
