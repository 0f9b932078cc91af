"""``Diagnosis``: everything a report may show. The contract of docs/json.md, field by field.

Field names, units and meaning are public (``schema_version``): add freely, rename nothing. Durations are
int nanoseconds (``*_ns``), shares are 0..1 (``*_share``), None means "not measured", never zero.
"""

from traceinsight.diagnosis.advice import (
    CleanRule,
    Evidence,
    Finding,
    Gain,
    Interval,
    NotJudged,
    RoadmapEntry,
    in_roadmap_order,
)
from traceinsight.diagnosis.document import SCHEMA_VERSION, Diagnosis
from traceinsight.diagnosis.measurements import (
    CAUSES,
    AllToAllMatrix,
    Clock,
    Collective,
    CommunicationRow,
    ForwardShare,
    GroupLink,
    KernelFamilyRow,
    LargestCollective,
    NanosecondRange,
    Partition,
    PhaseRow,
    StepTime,
    Straggler,
    typical_step_ns,
)
from traceinsight.diagnosis.prediction import PredictedEdit, Replay, WhatIf
from traceinsight.diagnosis.run import DataQuality, DroppedStep, Generator, OtherRun, Run
from traceinsight.diagnosis.shards import LoadBalance, RankLoad, ShardRow

__all__ = [
    "CAUSES",
    "SCHEMA_VERSION",
    "AllToAllMatrix",
    "CleanRule",
    "Clock",
    "Collective",
    "CommunicationRow",
    "DataQuality",
    "Diagnosis",
    "DroppedStep",
    "Evidence",
    "Finding",
    "ForwardShare",
    "Gain",
    "Generator",
    "GroupLink",
    "Interval",
    "KernelFamilyRow",
    "LargestCollective",
    "LoadBalance",
    "NanosecondRange",
    "NotJudged",
    "OtherRun",
    "Partition",
    "PhaseRow",
    "PredictedEdit",
    "RankLoad",
    "Replay",
    "RoadmapEntry",
    "Run",
    "ShardRow",
    "StepTime",
    "Straggler",
    "WhatIf",
    "in_roadmap_order",
    "typical_step_ns",
]
