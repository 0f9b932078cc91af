"""The context manager that owns the profiler."""

from __future__ import annotations

import datetime
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from traceinsight.capture.environment import allowed_environment, versions
from traceinsight.capture.files import write_json, write_trace
from traceinsight.capture.layout import find_place
from traceinsight.capture.manifest import SCHEMA_VERSION, describe_plan, describe_tables, finite

KEPT_STEPS = 10_000
"""Latest steps whose measurements stand in run.json: about 1 MB of JSON, however long the job runs."""


class Capture:
    """One rank's capture of one run.

    Enter it around the training loop, call ``step`` at the end of every step.

    Every rank enters it with the same arguments, after ``init_process_group``; nothing is sent between ranks.
    After ``wait`` + ``warmup`` steps it profiles ``active`` steps and writes
    ``<folder>/rank<RANK>.pt.trace.json.gz``; rank 0 also writes ``<folder>/run.json``.

    Nothing that goes wrong here ends the training: a note goes to stderr and training goes on without that
    file.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        wait: int = 20,
        warmup: int = 5,
        active: int = 5,
        run_id: str | None = None,
        batch_per_rank: int | None = None,
        tables: Iterable[Any] = (),
        mean_ids: float | None = None,
        plan: Any = None,
    ) -> None:
        """Take the folder of the run and what its traces do not say.

        ``wait``, ``warmup``, ``active`` are steps. ``tables`` are TorchRec's EmbeddingBagConfigs,
        ``mean_ids`` the mean number of ids per example and feature, ``plan`` the ShardingPlan
        (``model.plan``). ``run_id`` is the folder's name by default.
        """
        self._folder = Path(folder)
        self._place = find_place(os.environ)
        self._window = {"wait": wait, "warmup": warmup, "active": active}
        self._run_id = run_id or self._folder.name
        self._batch_per_rank = batch_per_rank
        self._tables, self._mean_ids, self._plan = tables, mean_ids, plan
        self._described: dict[str, object] = {}
        self._extra: dict[str, object] = {}
        self._steps: deque[dict[str, object]] = deque(maxlen=KEPT_STEPS)
        self._step = 0
        self._step_began_ns = 0
        self._profiler: Any = None

    @property
    def trace_file(self) -> Path:
        """Where this rank's trace goes."""
        return self._folder / f"rank{self._place.rank}.pt.trace.json.gz"

    def __enter__(self) -> Self:
        """Make the folder and start the profiler's schedule."""
        self._attempt("start", self._start)
        self._step_began_ns = time.perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the profiler and finish run.json.

        A window that training cut short is written as far as it got.
        """
        if self._profiler is not None:
            self._attempt("stop the profiler", self._profiler.stop)
            self._attempt("write run.json", self._write_manifest)

    def step(self, *, examples: int | None = None, **measured: float | None) -> None:
        """End a step. ``examples`` is this rank's count where it differs from ``batch_per_rank``.

        Further numbers (``loss=...``) are kept per step; those of rank 0 end up in run.json.
        """
        seconds = (time.perf_counter_ns() - self._step_began_ns) / 1e9
        count = self._batch_per_rank if examples is None else examples
        rate = None if count is None else round(count * self._place.world_size / seconds, 3)
        self._steps.append(
            {
                "step": self._step,
                "wall_ms": round(seconds * 1e3, 3),
                "examples_per_s": rate,
                **finite(measured),
            }
        )
        self._step += 1
        if self._profiler is not None:
            self._attempt("profile a step", self._profiler.step)
        self._step_began_ns = time.perf_counter_ns()  # writing a trace belongs to no step

    def record(self, name: str, value: object) -> None:
        """Add ``name`` to run.json.

        ``value`` is made of JSON types. Fields of the schema cannot be replaced.
        """
        self._extra[name] = value

    def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._described = self._describe()
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        profiler = torch.profiler.profile(
            activities=activities,
            schedule=torch.profiler.schedule(**self._window, repeat=1),
            on_trace_ready=self._on_trace_ready,
            record_shapes=True,  # sizes of collectives come from here
            with_stack=False,  # it makes every Python frame an event: larger files, slower steps
        )
        profiler.start()
        self._profiler = profiler

    def _describe(self) -> dict[str, object]:
        return {
            "schema_version": SCHEMA_VERSION,
            "run_id": self._run_id,
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "world_size": self._place.world_size,
            "nodes": self._place.nodes(),
            "batch_per_rank": self._batch_per_rank,
            "tables": describe_tables(self._tables, self._mean_ids),
            "sharding_plan": None if self._plan is None else describe_plan(self._plan),
            "versions": versions(),
            "environment": allowed_environment(os.environ),
            "capture": self._window,
        }

    def _on_trace_ready(self, profiler: Any) -> None:
        self._attempt("write the trace", lambda: write_trace(self.trace_file, profiler.export_chrome_trace))
        # Also here and not only at the end: a job that is killed later still has its manifest.
        self._attempt("write run.json", self._write_manifest)

    def _write_manifest(self) -> None:
        if self._place.rank == 0:
            steps = {"steps": list(self._steps)}
            write_json(self._folder / "run.json", {**self._extra, **self._described, **steps})

    def _attempt(self, what: str, action: Callable[[], object]) -> None:
        """Run ``action``; any failure becomes a note.

        Everything is caught because no defect of a profiler, a disk or this package is worth a training run.
        """
        try:
            action()
        except Exception as error:
            note = (
                f"traceinsight.capture: rank {self._place.rank} could not {what} in {self._folder}: {error}"
            )
            sys.stderr.write(f"{note}; training goes on without it\n")
