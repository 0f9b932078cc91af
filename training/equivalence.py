"""``python -m training.equivalence RUN_A RUN_B``: decide whether two runs' curves are equivalent.

The curves are of normalized entropy. RUN_A, the baseline, and RUN_B are folders that hold one run per seed
(``run.json`` of the job, at any depth). The test is TOST on the mean of the last part of training;
docs/convergence.md explains it. Exit status: 0 equivalent, 1 not shown to be, 2 usage, 3 unreadable.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from training.equivalence_curves import CurveError, Run, final_entropy, read_runs, window_of
from training.equivalence_tost import Comparison, compare, compare_pairs

EQUIVALENT, NOT_SHOWN, USAGE, UNREADABLE = 0, 1, 2, 3

MARGIN = 0.001
"""Relative difference of normalized entropy that does not matter: 0.1 %.

A convention of this project, on the strict side for click models; set your own with ``--margin``.
"""
CONFIDENCE = 0.95
MIN_SEEDS = 3
"""Below this the spread over seeds is a guess: with two pairs t must exceed 6.3, with three 2.9."""
FINAL_SHARE = 0.2
"""Part of training that counts. A single step is noise, and the beginning is the same in any run."""


def main(arguments: list[str] | None = None) -> int:
    """Print the comparison; return the exit status."""
    options = _parse(arguments)
    try:
        runs_a, runs_b = read_runs(options.run_a), read_runs(options.run_b)
        window = window_of([*runs_a, *runs_b], options.final)
        ends_a = [final_entropy(run, window) for run in runs_a]
        ends_b = [final_entropy(run, window) for run in runs_b]
    except CurveError as error:
        print(f"error: {error}", file=sys.stderr)
        return UNREADABLE
    print(f"A {options.run_a}: {_summary(ends_a)}")
    print(f"B {options.run_b}: {_summary(ends_b)}")
    print(f"normalized entropy of examples {window[0]:,} to {window[1]:,} of each run")
    fewest = min(len(runs_a), len(runs_b))
    if fewest < options.min_seeds:
        print(
            f"NOT DECIDED: {fewest} seed(s) on one side, at least {options.min_seeds} are needed to tell a "
            "change from the luck of a seed. Add runs with other data.seed"
        )
        return NOT_SHOWN
    result = _compare(runs_a, runs_b, ends_a, ends_b, options)
    print(_explain(result, options.margin, options.confidence))
    return EQUIVALENT if result.equivalent else NOT_SHOWN


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m training.equivalence",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("run_a", type=Path, metavar="RUN_A", help="folder with the baseline's runs")
    parser.add_argument("run_b", type=Path, metavar="RUN_B", help="folder with the changed job's runs")
    parser.add_argument("--margin", type=float, default=MARGIN, help=f"relative (default {MARGIN} = 0.1 %%)")
    parser.add_argument("--confidence", type=float, default=CONFIDENCE, help=f"default {CONFIDENCE}")
    parser.add_argument("--min-seeds", type=int, default=MIN_SEEDS, help=f"per side, default {MIN_SEEDS}")
    parser.add_argument(
        "--final", type=float, default=FINAL_SHARE, help=f"share of training, default {FINAL_SHARE}"
    )
    options = parser.parse_args(arguments)
    if not 0 < options.margin < 1:
        parser.error(f"--margin {options.margin} must lie between 0 and 1, e.g. 0.001 for 0.1 %")
    if not 0.5 < options.confidence < 1:
        parser.error(f"--confidence {options.confidence} must lie between 0.5 and 1")
    if not 0 < options.final <= 1:
        parser.error(f"--final {options.final} must be above 0 and at most 1")
    if options.min_seeds < 2:
        parser.error("--min-seeds must be at least 2: one run has no spread")
    return options


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
