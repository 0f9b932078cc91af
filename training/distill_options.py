"""Options of ``python -m training.distill``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

DESCRIPTION = """\
Make a small model for serving from a large one's predictions. Trains two
students of the same size on the same clicks, one with the teacher and one with
the labels alone, and prints quality and serving cost of all three side by side,
on clicks that none of them was trained on. One process, on CPU.
"""

EPILOG = """\
example:
  python -m training --recipe frm_cpu_2rank --set model.dim=64 \\
    --set model.hidden=128,64 --set checkpoint.folder=checkpoints/teacher
  python -m training.distill checkpoints/teacher/step-000000000060 \\
    --dim 4 --hidden 16
      A sixteenth of the teacher's values per row, one hidden layer.

exit status:
  0  done
  2  wrong option
  3  the checkpoint cannot be read, or the numbers cannot be written

docs/distillation.md explains the columns and what was measured.
"""


def parse(arguments: list[str] | None) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """Return the parser, for errors found later, and the options; ends the program where one is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m training.distill",
        usage="%(prog)s CHECKPOINT [options]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=80),
    )
    parser.add_argument(
        "checkpoint", type=Path, metavar="CHECKPOINT", help="a folder step-... of the teacher's run"
    )
    parser.add_argument(
        "--dim",
        type=int,
        default=4,
        metavar="N",
        help="values per row of the student's tables, a multiple of 4 (default %(default)s)",
    )
    parser.add_argument(
        "--hidden",
        type=_widths,
        default=(16,),
        metavar="WIDTHS",
        help="widths of the student's hidden layers: 32,16 is two of them (default 16)",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=300,
        metavar="N",
        help="batches each student is trained on (default %(default)s)",
    )
    parser.add_argument(
        "--teacher-share",
        type=float,
        default=0.7,
        metavar="SHARE",
        help="of the loss: 0.7 is 70 %% against the teacher's probability and 30 %% against the click; 0 "
        "ignores the teacher (default %(default)s)",
    )
    parser.add_argument(
        "--json", type=_writable, metavar="FILE", help="also write the numbers to FILE, replacing it"
    )
    options = parser.parse_args(arguments)
    if options.steps < 1 or not 0 <= options.teacher_share <= 1:
        parser.error("--steps must be at least 1 and --teacher-share between 0 and 1")
    return parser, options


def _widths(text: str) -> tuple[int, ...]:
    try:
        widths = tuple(int(width) for width in text.split(","))
    except ValueError:
        widths = ()
    if not widths or min(widths) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be whole numbers above 0 with commas, e.g. 32,16")
    return widths


def _writable(text: str) -> Path:
    """Return the path; found out now and not after minutes of training."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder; name a file")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"the folder {path.parent} does not exist")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written: no permission")
    return path
