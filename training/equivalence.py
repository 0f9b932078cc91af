"""``python -m training.equivalence RUN_A RUN_B``: decide whether two runs' curves are equivalent.

The curves are of normalized entropy. RUN_A, the baseline, and RUN_B are folders that hold one run per seed
(``run.json`` of the job, at any depth). The test is TOST on the mean of the last part of training;
docs/convergence.md explains it. Exit status: 0 equivalent, 1 not shown to be, 2 usage, 3 unreadable, 4 not
decided: the runs do not allow the comparison.
"""

from __future__ import annotations

import argparse
import statistics
import sys

from training.equivalence_curves import Run, cut_short, final_entropy, read_runs, window_of
from training.equivalence_manifest import CurveError
from training.equivalence_options import parse
from training.equivalence_tost import Comparison, compare, compare_pairs

EQUIVALENT, NOT_SHOWN, USAGE, UNREADABLE, NOT_DECIDED = 0, 1, 2, 3, 4


def main(arguments: list[str] | None = None) -> int:
    """Print the comparison; return the exit status."""
    options = parse(arguments)
    try:
        runs_a, runs_b = read_runs(options.run_a), read_runs(options.run_b)
        if undecided := _undecided(runs_a, runs_b, options):
            print(f"NOT DECIDED: {undecided}")
            return NOT_DECIDED
        window = window_of([*runs_a, *runs_b], options.final)
        ends_a = [final_entropy(run, window) for run in runs_a]
        ends_b = [final_entropy(run, window) for run in runs_b]
    except CurveError as error:
        print(f"error: {error}", file=sys.stderr)
        return UNREADABLE
    print(f"A {options.run_a}: {_summary(ends_a)}")
    print(f"B {options.run_b}: {_summary(ends_b)}")
    print(f"normalized entropy of examples {window[0]:,} to {window[1]:,} of each run")
    if sorted(run.points for run in runs_a) == sorted(run.points for run in runs_b):
        print("note: both sides have the same curves to the last digit; was the change switched on?")
    result = _compare(runs_a, runs_b, ends_a, ends_b, options)
    print(_explain(result, options.margin, options.confidence))
    return EQUIVALENT if result.equivalent else NOT_SHOWN


def _undecided(runs_a: list[Run], runs_b: list[Run], options: argparse.Namespace) -> str | None:
    """Return why these runs cannot be compared; None if they can."""
    shared = {run.path.resolve() for run in runs_a} & {run.path.resolve() for run in runs_b}
    if len(shared) == len(runs_a) == len(runs_b):
        return "A and B are the same runs. Name the folder of the changed job's runs as B"
    if shared:
        return f"{min(shared)} is a run of both sides. Name folders that do not contain each other"
    fewest = min(len(runs_a), len(runs_b))
    if fewest < options.min_seeds:
        return (
            f"{fewest} seed(s) on one side, at least {options.min_seeds} are needed to tell a change from "
            "the luck of a seed. Add runs with other data.seed"
        )
    if short := cut_short([*runs_a, *runs_b]):
        more = f"; and {len(short) - 1} more" if len(short) > 1 else ""
        return (
            f"{short[0]}{more}. What differs later, or what ended a run, would not be seen: train every run "
            "equally long, or leave that seed out on both sides"
        )
    return None


def _summary(ends: list[float]) -> str:
    spread = f", standard deviation {statistics.stdev(ends):.5f}" if len(ends) > 1 else ""
    return f"{len(ends)} seed(s), mean {statistics.mean(ends):.5f}{spread}"


def _compare(
    runs_a: list[Run],
    runs_b: list[Run],
    ends_a: list[float],
    ends_b: list[float],
    options: argparse.Namespace,
) -> Comparison:
    """Compare seed by seed where both sides have the same ones: they saw the same clicks."""
    of_a = {run.seed: end for run, end in zip(runs_a, ends_a, strict=True)}
    of_b = {run.seed: end for run, end in zip(runs_b, ends_b, strict=True)}
    unique = None not in of_a.keys() | of_b.keys() and len(of_a) == len(ends_a) and len(of_b) == len(ends_b)
    common = sorted(seed for seed in of_a.keys() & of_b.keys() if seed is not None)
    if unique and len(common) >= options.min_seeds:
        alone = len(of_a.keys() ^ of_b.keys())
        left_out = f"; {alone} run(s) with a seed of one side only are left out" if alone else ""
        print(f"paired by seed: {', '.join(map(str, common))}{left_out}")
        values = [of_a[seed] for seed in common], [of_b[seed] for seed in common]
        return compare_pairs(*values, options.margin, options.confidence)
    print("not paired (the sides have other or unknown seeds): Welch's test, which needs more seeds")
    return compare(ends_a, ends_b, options.margin, options.confidence)


def _explain(result: Comparison, margin: float, confidence: float) -> str:
    numbers = (
        f"B - A = {result.difference:+.3%} of A's normalized entropy, {2 * confidence - 1:.0%} interval "
        f"{result.low:+.3%} to {result.high:+.3%}, margin ±{margin:.3%}, p = {result.p_value:.4f} "
        f"(TOST, {result.degrees} degrees of freedom)"
    )
    if result.equivalent:
        return f"{numbers}\nEQUIVALENT: with {confidence:.0%} confidence the difference is inside the margin"
    if result.low > margin or result.high < -margin:
        worse = "worse" if result.difference > 0 else "better"
        return f"{numbers}\nDIFFERENT: the whole interval is outside the margin; B is {worse}"
    return (
        f"{numbers}\nNOT SHOWN: the interval reaches beyond the margin, so neither a difference nor its "
        "absence is shown. Add seeds or train longer"
    )


if __name__ == "__main__":
    sys.exit(main())
