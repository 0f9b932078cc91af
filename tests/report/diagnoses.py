"""Diagnoses made by hand: what a report must be able to show, with numbers that are easy to check."""

from dataclasses import dataclass, field
from typing import Any

from traceinsight.diagnosis import (
    CleanRule,
    Clock,
    Collective,
    CommunicationRow,
    DataQuality,
    Diagnosis,
    DroppedStep,
    Evidence,
    Finding,
    ForwardShare,
    Gain,
    Generator,
    Interval,
    KernelFamilyRow,
    LargestCollective,
    NanosecondRange,
    NotJudged,
    OtherRun,
    Partition,
    PhaseRow,
    RoadmapEntry,
    Run,
    StepTime,
    Straggler,
)

US = 1_000
MS = 1_000_000
STEP_NS = 200 * MS

HOSTILE_NAME = (
    "\x1b[31mred\x1b[0m\x1b]0;title\x07 [red]markup[/red] <script>alert(1)</script> a|b `code` "
    "two\nlines \u202egnp.exe\u2069 \x9b2J @everyone https://evil.example/x " + "k" * 5000
)


def run(**changes: Any) -> Run:
    fields: dict[str, Any] = {
        "world_size": 8,
        "ranks": list(range(8)),
        "missing_ranks": [],
        "device": "NVIDIA A100-SXM4-80GB",
        "backend": "nccl",
        "steps": [10, 11, 12],
        "dropped_steps": [],
        "other_runs": [],
        "step_source": "ProfilerStep",
        "files": [f"traces/rank{rank}.json.gz" for rank in range(8)],
    }
    return Run(**(fields | changes))


def partition_row(rank: int, step: int, *, wait_ms: int = 10, window_ms: int = 200) -> Partition:
    """compute 100 ms, transfer 20 ms, copy 2 ms, the wait given, and the rest idle."""
    window_ns, wait_ns = window_ms * MS, wait_ms * MS
    idle_ns = window_ns - wait_ns - 122 * MS
    return Partition(
        rank=rank,
        step=step,
        window_ns=window_ns,
        compute_ns=100 * MS,
        exposed_comm_transfer_ns=20 * MS,
        exposed_comm_wait_ns=wait_ns,
        exposed_comm_unsplit_ns=0,
        exposed_copy_ns=2 * MS,
        idle_ns=idle_ns,
        idle_by_cause_ns={"input": idle_ns // 4, "host": idle_ns - idle_ns // 4},
    )


def forward_row(rank: int, step: int, *, wait_ms: int = 30) -> ForwardShare:
    comm_ns = (wait_ms + 10) * MS
    return ForwardShare(
        rank=rank,
        step=step,
        span_ns=80 * MS,
        comm_ns=comm_ns,
        exposed_comm_ns=comm_ns,
        exposed_transfer_ns=10 * MS,
        exposed_wait_ns=wait_ms * MS,
        exposed_unsplit_ns=0,
        largest_collective=LargestCollective(name="## All2All_Pooled_fwd ##", share=comm_ns / (80 * MS)),
        source="## forward ##",
    )


def communication_row(**changes: Any) -> CommunicationRow:
    fields: dict[str, Any] = {
        "op": "all_to_all",
        "label": "## All2All_Pooled_fwd ##",
        "phase": "forward",
        "count_per_step": 1.0,
        "bytes_per_step": 512 * MS,
        "dtype": "float",
        "busy_ns": 45 * MS,
        "exposed_ns": 40 * MS,
        "exposed_transfer_ns": 10 * MS,
        "exposed_wait_ns": 30 * MS,
        "exposed_unsplit_ns": 0,
        "exposed_share": 0.2,
        "bus_gbps": 24.07,
    }
    return CommunicationRow(**(fields | changes))


def collective(**changes: Any) -> Collective:
    fields: dict[str, Any] = {
        "op": "all_to_all",
        "group": "default_pg",
        "step": 10,
        "ranks": list(range(8)),
        "unmatched_ranks": [],
        "bytes": 512 * MS,
        "dtype": "float",
        "transfer_ns": 10 * MS,
        "wait_ns": {rank: (0 if rank == 5 else 30 * MS) for rank in range(8)},
        "bus_gbps": 24.07,
        "label": "## All2All_Pooled_fwd ##",
        "phase": "forward",
        "algorithm_gbps": 27.5,
        "size_imbalance": 1.4,
        "last_rank": 5,
        "synchronising": True,
    }
    return Collective(**(fields | changes))


def straggler(**changes: Any) -> Straggler:
    fields: dict[str, Any] = {
        "ranks": [5],
        "last_share": 0.75,
        "lateness_ns": NanosecondRange(low=25 * MS, expected=30 * MS, high=36 * MS),
        "ceiling_ns": 30 * MS,
        "cause": "compute",
        "confidence": "high",
        "persistence": "persistent",
        "steps_late": 3,
        "steps_judged": 3,
        "behind_median_ns": 31 * MS,
        "detail": "Rank 5 is late: its own compute takes longer (29.8 ms more per step than on the others).",
    }
    return Straggler(**(fields | changes))


def gain(expected_ms: int, *, low_ms: int | None = None, high_ms: int | None = None, **changes: Any) -> Gain:
    expected = expected_ms * MS
    low = expected if low_ms is None else low_ms * MS
    high = expected if high_ms is None else high_ms * MS
    fields: dict[str, Any] = {
        "kind": "ceiling",
        "step_ns": NanosecondRange(low=low, expected=expected, high=high),
        "speedup": Interval(
            low=STEP_NS / (STEP_NS - low),
            expected=STEP_NS / (STEP_NS - expected),
            high=STEP_NS / (STEP_NS - high),
        ),
    }
    return Gain(**(fields | changes))


def late_finding(**changes: Any) -> Finding:
    fields: dict[str, Any] = {
        "rule": "straggler",
        "severity": "major",
        "confidence": "high",
        "title": "Rank 5 comes late to the collectives: the other ranks wait 15% of the step for it",
        "ranks": [5],
        "evidence": [
            Evidence(metric="lateness", value=30 * MS, unit="ns", where="behind the last of the other ranks"),
            Evidence(
                metric="last_arrival",
                value=0.75,
                unit="share",
                where="of the collectives all ranks meet at",
            ),
            Evidence(metric="steps_late", value=3, unit="count", where="of 3 analysed steps (persistent)"),
        ],
        "gain": gain(30),
        "action": "Move tables off rank 5, then check the clocks and the throttling of its GPU.",
        "quality_risk": "None: when ranks arrive does not change the numbers they compute.",
    }
    return Finding(**(fields | changes))


def exchange_finding(ranks: int = 8) -> Finding:
    return Finding(
        rule="exposed-all-to-all",
        severity="minor",
        confidence="medium",
        title="The embedding exchange (all-to-all) is exposed: 5.0% of the step is transfer",
        ranks=list(range(ranks)),
        evidence=[
            Evidence(metric="exposed_all_to_all", value=0.05, unit="share", where="of the step window"),
            Evidence(metric="payload", value=512 * MS, unit="bytes", where="per rank and step"),
            Evidence(metric="bus_bandwidth", value=24.07, unit="GB/s", where="median over steps"),
            Evidence(metric="size_imbalance", value=1.4, unit="ratio", where="largest over mean of ranks"),
        ],
        gain=gain(10, low_ms=8, high_ms=14),
        action="Send fewer bytes: QCommsConfig(forward_precision=CommType.FP8).",
        quality_risk="Changes numerics: compare normalized entropy against the FP32 run.",
    )  # fmt: skip


@dataclass
class Parts:
    """A Diagnosis to be; every field may be replaced."""

    fields: dict[str, Any] = field(default_factory=dict)

    def build(self, **changes: Any) -> Diagnosis:
        return Diagnosis(**(self.fields | changes))


def _torchrec() -> dict[str, Any]:
    ranks, steps = range(8), (10, 11, 12)
    cells = [(rank, step) for rank in ranks for step in steps]
    return {
        "generator": Generator(name="traceinsight", version="1.2.3"),
        "run": run(
            dropped_steps=[
                DroppedStep(step=9, reason="first captured step, 2.4x the median"),
                DroppedStep(step=13, reason="longer than 2x the median"),
                DroppedStep(step=14, reason="longer than 2x the median"),
            ]
        ),
        "verdict": "Rank 5 comes late to the collectives: the other ranks wait 15% of the step for it; "
        "the GPUs compute 50% of the step (median over ranks and steps).",
        "step_times": [
            StepTime(rank=rank, step=step, cpu_ns=198 * MS, device_ns=STEP_NS) for rank, step in cells
        ],
        "partition": [partition_row(rank, step, wait_ms=1 if rank == 5 else 40) for rank, step in cells],
        "phases": [
            PhaseRow(
                rank=rank, step=step, phase=phase, host_ns=40 * MS, compute_ns=compute_ms * MS,
                comm_ns=comm_ms * MS, exposed_comm_ns=comm_ms * MS, copy_ns=0,
            )
            for rank, step in cells
            for phase, compute_ms, comm_ms in (("input", 0, 0), ("forward", 40, 40), ("backward", 60, 20))
        ],
        "forward": [forward_row(rank, step, wait_ms=0 if rank == 5 else 30) for rank, step in cells],
        "communication": [
            communication_row(),
            communication_row(
                op="all_reduce", label=None, phase="backward", count_per_step=3.0, busy_ns=25 * MS,
                exposed_ns=9 * MS, exposed_transfer_ns=9 * MS, exposed_wait_ns=0, exposed_share=0.045,
                bytes_per_step=None, bus_gbps=None,
            ),
        ],
        "collectives": [collective(step=step) for step in steps],
        "clocks": [Clock(rank=rank, offset_ns=rank * 150 - 300, residual_ns=2_400) for rank in ranks],
        "stragglers": [straggler()],
        "kernels": [
            KernelFamilyRow(
                family="gemm", busy_ns=70 * MS, share=0.7, count_per_step=120.5,
                top_kernels=["ampere_sgemm_128x64_nn", "volta_sgemm_128x32_nt"],
            ),
            KernelFamilyRow(
                family="embedding", busy_ns=30 * MS, share=0.3, count_per_step=8.0,
                top_kernels=["void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel<f>()"],
            ),
        ],
        "findings": [exchange_finding(), late_finding()],
        "roadmap": [RoadmapEntry(rule="straggler"), RoadmapEntry(rule="exposed-all-to-all")],
        "clean": [
            CleanRule(rule="input-bound", summary="idle time for input is 1.9% of the step, below 5.0%")
        ],
        "not_judged": [],
        "data_quality": [],
    }  # fmt: skip


def late_rank() -> Diagnosis:
    """TorchRec on 8 GPUs, rank 5 late, three steps dropped."""
    return Parts(_torchrec()).build()


def healthy() -> Diagnosis:
    """Nothing found, everything judged."""
    return Parts(_torchrec()).build(
        verdict="Healthy: no bottleneck found above 5.0% of the step; the GPUs compute 90% of the step.",
        stragglers=[],
        findings=[],
        roadmap=[],
    )


def gloo_without_gpu() -> Diagnosis:
    """Four CPU processes: no kernels, no bandwidths, a second run in the folder."""
    base = _torchrec()
    cells = [(rank, step) for rank in range(4) for step in (20, 21)]
    return Parts(base).build(
        run=run(
            world_size=4,
            ranks=list(range(4)),
            device="CPU",
            backend="gloo",
            steps=[20, 21],
            files=[f"rank{rank}.json" for rank in range(4)],
            other_runs=[
                OtherRun(index=1, files=["old/rank0.json"], ranks=[0, None], start="2026-01-02 03:04:05 UTC")
            ],
            quantized_comms=["fp16"],
        ),
        step_times=[StepTime(rank=rank, step=step, cpu_ns=STEP_NS, device_ns=None) for rank, step in cells],
        partition=[partition_row(rank, step) for rank, step in cells],
        forward=[],
        communication=[communication_row(bytes_per_step=None, dtype=None, bus_gbps=None)],
        collectives=[],
        clocks=[Clock(rank=rank, offset_ns=None, residual_ns=None) for rank in range(4)],
        kernels=[],
        stragglers=[],
        verdict="The embedding exchange (all-to-all) is exposed: 5.0% of the step is transfer; the ranks "
        "compute 50% of the step (median over ranks and steps).",
        findings=[exchange_finding(4)],
        roadmap=[RoadmapEntry(rule="exposed-all-to-all")],
    )


def single_rank() -> Diagnosis:
    """One of 128 ranks: nothing that needs peers can be judged."""
    row = Partition(
        rank=0, step=551, window_ns=STEP_NS, compute_ns=100 * MS, exposed_comm_transfer_ns=0,
        exposed_comm_wait_ns=0, exposed_comm_unsplit_ns=60 * MS, exposed_copy_ns=0, idle_ns=40 * MS,
        idle_by_cause_ns={"unattributed": 40 * MS},
    )  # fmt: skip
    poor = Finding(
        rule="poor-capture", severity="minor", confidence="high",
        title="Too little was captured to judge everything: 30% of the step cannot be split",
        ranks=[0],
        evidence=[Evidence(metric="exposed_unsplit", value=0.3, unit="share", where="of the step window")],
        gain=None, action="Capture the same steps on all ranks (127 are missing).",
        quality_risk="None: only the capture changes.",
    )  # fmt: skip
    return Parts(_torchrec()).build(
        run=run(
            world_size=128, ranks=[0], missing_ranks=list(range(1, 128)), device=None, backend=None,
            steps=[551], files=["rank0.json.gz"],
        ),
        verdict="Too little was captured to judge everything: 30% of the step cannot be split; "
        "the GPUs compute 50% of the step.",
        step_times=[StepTime(rank=0, step=551, cpu_ns=None, device_ns=STEP_NS)],
        partition=[row],
        phases=[],
        forward=[],
        communication=[],
        collectives=[collective(step=551, ranks=[0], unmatched_ranks=list(range(1, 8)), transfer_ns=None,
                                wait_ns={0: 0}, bytes=None, dtype=None, bus_gbps=None, last_rank=None)],
        clocks=[Clock(rank=0, offset_ns=0, residual_ns=None)],
        stragglers=[],
        findings=[poor],
        roadmap=[RoadmapEntry(rule="poor-capture")],
        not_judged=[
            NotJudged(
                rule="straggler",
                reason="127 of 128 ranks were not captured: the late one may be among them",
                capture_hint="Capture the same steps on all ranks.",
            ),
            NotJudged(
                rule="input-bound",
                reason="no data-loader or batch-loading annotation was recorded",
                capture_hint='Wrap fetching the batch in record_function("## load_batch ##").',
            ),
        ],
        data_quality=[
            DataQuality(
                severity="error", rank=None, file="traces/rank1.json.gz", code="truncated-file",
                message="The file ends in the middle of an event; 12 events were lost.", count=12,
            ),
            *(
                DataQuality(
                    severity="warning", rank=rank, file=f"traces/rank{rank}.json.gz", code="lost-kernels",
                    message=f"Rank {rank} lost 3 kernels.", count=3,
                )
                for rank in range(500)
            ),
        ],
    )  # fmt: skip


def nothing_measured() -> Diagnosis:
    """No step with device activity: every measurement is absent."""
    empty: list[Any] = []
    return Parts(_torchrec()).build(
        run=run(world_size=None, ranks=[0], missing_ranks=[], device=None, backend=None, steps=[], files=[]),
        verdict="The bottleneck cannot be judged: no step with device activity was recorded.",
        **dict.fromkeys(
            ("step_times", "partition", "phases", "forward", "communication", "collectives", "clocks",
             "stragglers", "kernels", "findings", "roadmap", "clean"),
            empty,
        ),
        not_judged=[
            NotJudged(
                rule="straggler",
                reason="no device activity was recorded in a step",
                capture_hint="Profile with activities=[CPU, CUDA] on every rank.",
            )
        ],
    )  # fmt: skip


def many_ranks(count: int = 256) -> Diagnosis:
    """A large job: rank 77 waits for nobody, rank 200 waits most."""
    waits = {77: 0, 200: 70}
    return Parts(_torchrec()).build(
        run=run(
            world_size=count,
            ranks=list(range(count)),
            steps=[10],
            files=[f"r{rank}" for rank in range(count)],
        ),
        verdict="Rank 77 comes late to the collectives: the other ranks wait 15% of the step for it.",
        partition=[partition_row(rank, 10, wait_ms=waits.get(rank, 40)) for rank in range(count)],
        forward=[forward_row(rank, 10, wait_ms=waits.get(rank, 30)) for rank in range(count)],
        clocks=[Clock(rank=rank, offset_ns=rank * 10, residual_ns=2_400) for rank in range(count)],
        stragglers=[straggler(ranks=[77], detail="Rank 77 is late: its own compute takes longer.")],
        findings=[late_finding(ranks=[77], title="Rank 77 comes late", action="Move tables off rank 77.")],
    )


def hostile() -> Diagnosis:
    """Every text that comes out of a trace, or may quote one, is an attack."""
    name = HOSTILE_NAME
    return Parts(_torchrec()).build(
        verdict=f"Rank 5 waits for {name}",
        run=run(
            device=name, backend=name, step_source=name, quantized_comms=[name],
            dropped_steps=[DroppedStep(step=1, reason=name)],
            other_runs=[OtherRun(index=1, files=[name], ranks=[0], start=name)],
        ),
        forward=[
            ForwardShare(
                rank=0, step=10, span_ns=80 * MS, comm_ns=MS, exposed_comm_ns=MS, exposed_transfer_ns=MS,
                exposed_wait_ns=0, exposed_unsplit_ns=0,
                largest_collective=LargestCollective(name=name, share=0.1), source=name,
            )
        ],
        communication=[communication_row(op=name, label=name, phase=name, dtype=name)],
        stragglers=[straggler(cause=name, detail=name)],
        kernels=[
            KernelFamilyRow(family=name, busy_ns=MS, share=1.0, count_per_step=1.0, top_kernels=[name])
        ],
        findings=[
            late_finding(
                title=name, action=name, quality_risk=name,
                evidence=[Evidence(metric=name, value=0.5, unit="share", where=name)],
            )
        ],
        clean=[CleanRule(rule="input-bound", summary=name)],
        not_judged=[NotJudged(rule="straggler", reason=name, capture_hint=name)],
        data_quality=[
            DataQuality(severity="error", rank=0, file=name, code="odd", message=name, count=None)
        ],
    )  # fmt: skip


CASES = {
    "late_rank": late_rank,
    "healthy": healthy,
    "gloo_without_gpu": gloo_without_gpu,
    "single_rank": single_rank,
    "nothing_measured": nothing_measured,
    "many_ranks": many_ranks,
    "hostile": hostile,
}
