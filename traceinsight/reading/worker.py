"""The process that reads one file for :mod:`.parallel`: job on stdin, outcome on stdout."""

from __future__ import annotations

import os
import pickle
import sys

from traceinsight.reading.read_file import read_file


def main() -> None:
    """Takes a pickled ``(source, rank)``; answers with the pickled outcome, for our parent alone."""
    # Whatever a library prints must not end up between the bytes of the answer.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    source, given_rank = pickle.load(sys.stdin.buffer)
    with answer:
        pickle.dump(read_file(source, given_rank), answer, protocol=5)
