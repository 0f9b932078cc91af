"""Is the change that a report names first the one that brings most? On simulated runs, by truth.

    python benchmarks/first_change.py [--specs 32] [--first-seed 88000]

Random specifications are those of ``prediction.py``. Each run is simulated, written and analysed like
anybody's; then each change is made in the specification and simulated. Of other networks only one that the
report names first is among them: a network is bought, not set, and makes nearly every run faster. Changes of
the examples per step (``batch``, ``nodes``) and networks given by bandwidth are left out. What no change
makes ``MIN_GAIN_SHARE`` faster must have an empty roadmap.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.prediction import changes, random_fields, with_change
from traceinsight import api
from traceinsight.advice.roadmap import MIN_GAIN_SHARE
from traceinsight.base.hardware import NETWORKS
from traceinsight.diagnosis import Diagnosis
from traceinsight.simulate import decode_spec, simulate, write_run

LEFT_OUT = ("batch", "nodes", "network")
TIE = 0.01
"""Of the step: a change within this of the best one is as good."""


@dataclass(frozen=True)
class Answer:
    """What the report names first, and the truth: step time after a change / step time today."""

    seed: int
    bottleneck: str
    first: str | None
    share_after: dict[str, float]

    @property
    def best(self) -> str | None:
        """The truly best change; None where none is worth making."""
        edit = min(self.share_after, key=self.share_after.__getitem__)
        return edit if self.share_after[edit] <= 1 - MIN_GAIN_SHARE else None

    @property
    def verdict(self) -> str:
        """``right``, ``lesser`` (another change gains more), ``silent`` or ``needless``."""
        if self.best is None:
            return "right" if self.first is None else "needless"
        if self.first is None:
            return "silent"
        # The values of one edit may differ: 2d=4 for 2d=8 is the right kind of change.
        same = self.first.partition("=")[0] == self.best.partition("=")[0]
        as_good = self.share_after.get(self.first, 1.0) <= self.share_after[self.best] + TIE
        return "right" if same or as_good else "lesser"


def answer(seed: int) -> Answer:
    """Analyse one random run, and try every change of it."""
    bottleneck, fields = random_fields(seed)
    run = simulate(decode_spec(fields))
    with tempfile.TemporaryDirectory() as folder:
        write_run(run, folder, overwrite=True)
        diagnosis = api.analyze(folder)
    tried = {edit: change for edit, change in changes(fields) if edit.partition("=")[0] not in LEFT_OUT}
    tried |= {f"network={name}": {"cluster": {"network": name}} for name in _first_network(diagnosis)}
    named = (entry.edit for entry in diagnosis.roadmap if entry.edit is not None)
    first = next((edit for edit in named if edit in tried or edit.partition("=")[0] not in LEFT_OUT), None)
    truth = {
        edit: simulate(with_change(fields, change)).truth.step_ns / run.truth.step_ns
        for edit, change in tried.items()
    }
    return Answer(seed, bottleneck, first, truth)


def _first_network(diagnosis: Diagnosis) -> list[str]:
    edits = [entry.edit for entry in diagnosis.roadmap if entry.edit is not None][:1]
    targets = [edit.partition("=")[2] for edit in edits if edit.startswith("network=")]
    return [name for name in targets if name in NETWORKS]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per run that is not right, and the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--specs", type=int, default=32, help="how many runs")
    parser.add_argument("--first-seed", type=int, default=88000, help="seed of the first run")
    options = parser.parse_args(arguments)
    answers = []
    for seed in range(options.first_seed, options.first_seed + options.specs):
        answers.append(one := answer(seed))
        print(f"{seed} {one.verdict}", file=sys.stderr)
        if one.verdict != "right":
            gains = sorted((share, edit) for edit, share in one.share_after.items())[:3]
            truth = ", ".join(f"{edit} {share - 1:+.1%}" for share, edit in gains)
            print(f"seed {seed} ({one.bottleneck}): {one.verdict}; first {one.first}; truth: {truth}")
    worth = [one for one in answers if one.best is not None]
    right = sum(one.verdict == "right" for one in worth)
    print(f"Of {len(worth)} runs with a change worth making, the first named is the best in {right}.")
    needless = sum(one.verdict == "needless" for one in answers)
    print(f"Of {len(answers) - len(worth)} others, {needless} are given a change all the same.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
