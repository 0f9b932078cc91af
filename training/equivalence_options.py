"""Options of ``python -m training.equivalence``."""

from __future__ import annotations

import argparse
from pathlib import Path

MARGIN = 0.001
"""Relative difference of normalized entropy that does not matter: 0.1 %.

A convention of this project, on the strict side for click models; set your own with ``--margin``.
"""
CONFIDENCE = 0.95
MIN_SEEDS = 3
"""Below this the spread over seeds is a guess: with two pairs t must exceed 6.3, with three 2.9."""
FINAL_SHARE = 0.2
"""Part of training that counts. A single step is noise, and the beginning is the same in any run."""

DESCRIPTION = """\
Decide whether a changed job still learns the same: train the job before
(RUN_A, the baseline) and after the change (RUN_B) with the same seeds, and
compare their curves of normalized entropy.

RUN_A and RUN_B are folders with one run per seed, that is with files run.json
at any depth:

  study/fp32/1/run.json  study/fp32/2/run.json  study/fp32/3/run.json
  study/fp8/1/run.json   study/fp8/2/run.json   study/fp8/3/run.json
"""

EPILOG = """\
examples:
  python -m training.equivalence study/fp32 study/fp8
      Runs with the same data.seed are compared pair by pair.
  python -m training.equivalence study/fp32 study/fp8 --margin 0.005
      For a model that may lose half a per cent.
  python -m training.equivalence study/fp32 study/fp8 --final 0.5
      The second half of training instead of its last fifth: less noise, and
      more of the time in which the model was still learning.

exit status:
  0  EQUIVALENT: shown to differ by less than the margin
  1  DIFFERENT, or NOT SHOWN to be equivalent
  2  wrong option
  3  a run cannot be read; the message names file and field
  4  NOT DECIDED: too few seeds, a run that ended early or is not as long as the
     others, or the same runs on both sides

docs/convergence.md explains the test (TOST).
"""


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options; ends the program with status 2 where one is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m training.equivalence",
        usage="%(prog)s RUN_A RUN_B [options]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=80),
    )
    parser.add_argument("run_a", type=Path, metavar="RUN_A", help="folder with the baseline's runs")
    parser.add_argument("run_b", type=Path, metavar="RUN_B", help="folder with the changed job's runs")
    parser.add_argument(
        "--margin",
        type=float,
        default=MARGIN,
        metavar="SHARE",
        help="difference that does not matter, relative to A's normalized entropy; 0.001 is 0.1 %%: with "
        "0.8000 in A, 0.7992 to 0.8008 in B (default %(default)s)",
    )
    parser.add_argument(
        "--confidence",
        type=float,
        default=CONFIDENCE,
        metavar="P",
        help="how sure EQUIVALENT must be: with 0.95 a change that does matter passes in at most 5 of 100 "
        "studies; 0.99 asks for more seeds (default %(default)s)",
    )
    parser.add_argument(
        "--min-seeds",
        type=int,
        default=MIN_SEEDS,
        metavar="N",
        help="runs per side below which nothing is decided (default %(default)s)",
    )
    parser.add_argument(
        "--final",
        type=float,
        default=FINAL_SHARE,
        metavar="SHARE",
        help="last part of training that is averaged: of 400 steps, 0.2 takes steps 320 to 399 "
        "(default %(default)s)",
    )
    options = parser.parse_args(arguments)
    if not 0 < options.margin < 1:
        parser.error(f"--margin {options.margin} must lie between 0 and 1, e.g. 0.001 for 0.1 %")
    if not 0.5 < options.confidence < 1:
        parser.error(f"--confidence {options.confidence} must lie between 0.5 and 1, e.g. 0.95")
    if not 0 < options.final <= 1:
        parser.error(f"--final {options.final} must be above 0 and at most 1, e.g. 0.2 for the last fifth")
    if options.min_seeds < 2:
        parser.error("--min-seeds must be at least 2: one run has no spread")
    return options
