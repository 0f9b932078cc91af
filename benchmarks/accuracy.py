"""How well replay explains measured steps, and how its predictions meet what really happened.

    python benchmarks/accuracy.py > docs/accuracy.md

Needs the public traces (TRACEINSIGHT_CORPUS, or ../shared/corpus beside the repository) and sample_traces/.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from traceinsight import api  # noqa: E402 - the repository must be on the path first

CORPUS = Path(os.environ.get("TRACEINSIGHT_CORPUS") or REPOSITORY.parent / "shared" / "corpus")
SAMPLES = REPOSITORY / "sample_traces"
SETS = (
    "dlrm_v100_8rank",
    "torchrec_v100_4rank/sst_sleep_pl_dense_after_backward_2",
    "torchrec_v100_4rank/sst_long_a2a_optimizer_2",
    "torchrec_v100_4rank/sst_long_a2a_optimizer_4",
    "torchrec_v100_4rank/sst_long_a2a_optimizer_qcomm_trace",
    "nanogpt_h100_8rank",
)
# (run before, edit, run after): both measured by the project's own training job. `hot_partition` has no
# such pair: without its fault its lookups would still take their time, and those of `healthy` do not.
PAIRS = (
    ("late_rank", "no-straggler=2", "healthy"),
    ("slow_input", "no-input-wait", "healthy"),
    ("exposed_a2a_fp32", "qcomms=fp8", "exposed_a2a_fp8"),
)

HEAD = """# Accuracy of replay and prediction

Made by `python benchmarks/accuracy.py > docs/accuracy.md`.

## Replay residual

The measured steps are replayed from causes alone: host time, launches, order on streams, waits
across streams, room on the device, host synchronisation, meetings across ranks. Delays that none of
these explains are left out of this replay, so the residual is not zero by construction. It is the
distance between the replayed and the measured length of a step, as share of the latter. Above 5 %
(median over steps) nothing is predicted.

| run | steps | median | worst step |
|---|---|---|---|"""

PREDICTIONS = """
## Prediction against measurement, real runs

Both runs are the project's own (gloo, 4 ranks, emulated accelerator time); the second is the first
without its fault. Step times are medians over the steps, as `traceinsight compare` takes them.

| before | edit | measured before | predicted after | measured after | error |
|---|---|---|---|---|---|"""

REPEATED_HEAD = """
Every fault of the training job that an edit can take away, two ranks, each pair of runs several times
(`python benchmarks/real_prediction.py > benchmarks/results/real_prediction.md`):
"""
REPEATED = REPOSITORY / "benchmarks" / "results" / "real_prediction.md"

LIMITS = """
A hot partition is the one fault that no edit takes away exactly: without it, its ids fall evenly on all
ranks, so the other ranks have more to do than before, while `no-straggler` leaves them as they were.
The slow link was run beside other work on both cores: its runs without the link differ by 18 %.

The samples were made on a busy machine with two cores, and `healthy` fetches input too, which
`no-input-wait` takes away. Every edit against simulated truth: [prediction.md](prediction.md).
"""


def residuals() -> Iterator[str]:
    """One row per run."""
    runs = [(name, CORPUS / name) for name in SETS]
    own = sorted(path.parent for path in SAMPLES.rglob("run.json"))
    runs += [(f"sample_traces/{path.relative_to(SAMPLES)}", path) for path in own]
    for name, path in runs:
        answer = api.whatif(api.load(path), [])
        replay = answer.replay
        if replay.residual_share is None:
            yield f"| {name} | – | {replay.reason} | |"
        else:
            steps = len(answer.run.steps)
            yield f"| {name} | {steps} | {replay.residual_share:.2%} | {replay.worst_step:.2%} |"


def predictions() -> Iterator[str]:
    """One row per pair of real runs."""
    for before, edit, after in PAIRS:
        found = api.compare(api.load(SAMPLES / before), api.load(SAMPLES / after), [edit])
        (held,) = found.predictions
        step, was_ns = held.step_ns, found.step_time.before_ns
        if step is None or held.measured_ns is None or was_ns is None or held.error_share is None:
            raise SystemExit(f"{before}: {edit} was not predicted")
        yield (
            f"| {before} | `{edit}` | {was_ns / 1e6:.1f} ms | {step.expected / 1e6:.1f} ms "
            f"({step.low / 1e6:.1f} to {step.high / 1e6:.1f}) | {held.measured_ns / 1e6:.1f} ms "
            f"| {held.error_share:+.1%} |"
        )


if __name__ == "__main__":
    repeated = REPEATED.read_text(encoding="utf-8").rstrip()
    print(HEAD, *residuals(), PREDICTIONS, *predictions(), REPEATED_HEAD, repeated, LIMITS, sep="\n", end="")
