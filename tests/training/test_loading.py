"""Background loaders: what reaches their rank does not reach them, and they do not outlive it."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.training.running import REPOSITORY, alive
from tests.training.test_run import wait_until
from training.config import with_settings
from training.data import ClickStream
from training.faults import make_fault
from training.loading import batches
from training.recipes import recipe

SETTINGS = ["data.workers=1", "data.prefetch=1", "data.batch_per_rank=4"]


def test_workers_go_on_when_a_stop_signal_reaches_them() -> None:
    config = with_settings(recipe("frm_cpu_2rank"), SETTINGS)
    stream = batches(config, rank=0, first=0, fault=make_fault(config, 0))
    made = [next(stream)]
    (worker,) = multiprocessing.active_children()
    assert worker.pid is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(worker.pid, number)
    made += [next(stream) for _ in range(9)]

    alone = ClickStream(config, 0)
    assert all(torch.equal(batch.labels, alone.batch(n).labels) for n, batch in enumerate(made))
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()  # the rank itself hears them
    stream.close()


ENDS_AT_ONCE = """
import multiprocessing, os
from training.config import with_settings
from training.faults import make_fault
from training.loading import batches
from training.recipes import recipe

config = with_settings(recipe("frm_cpu_2rank"), {settings})
stream = batches(config, rank=0, first=0, fault=make_fault(config, 0))
next(stream)
print(multiprocessing.active_children()[0].pid, flush=True)
os._exit(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the worker notices by itself, in seconds")
def test_workers_end_with_their_rank(tmp_path: Path) -> None:
    program = ENDS_AT_ONCE.format(settings=SETTINGS)
    # A file and not a pipe: reading to the end of a pipe would wait for the worker that also holds it.
    with (tmp_path / "pid").open("w") as said:
        subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, stdout=said, check=True)
    worker = int((tmp_path / "pid").read_text())
    wait_until(lambda: not alive(worker), seconds=2)  # by itself a worker looks every 5 s
