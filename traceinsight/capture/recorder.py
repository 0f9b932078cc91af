"""The context manager that owns the profiler."""

from __future__ import annotations

import datetime
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from traceinsight.capture.environment import allowed_environment, versions
from traceinsight.capture.files import write_json, write_trace
from traceinsight.capture.layout import find_place
from traceinsight.capture.manifest import (
    SCHEMA_VERSION,
    describe_estimates,
    describe_plan,
    describe_tables,
    finite,
)
from traceinsight.capture.meter import TableMeter, merge
from traceinsight.capture.schedule import Schedule

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
        repeat: int = 1,
        first_step: int = 0,
        run_id: str | None = None,
        batch_per_rank: int | None = None,
        tables: Iterable[Any] = (),
        mean_ids: float | None = None,
        plan: Any = None,
        estimates: Iterable[Any] | None = None,
        measure: torch.nn.Module | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Take the folder of the run and what its traces do not say.

        ``wait``, ``warmup``, ``active`` are steps, gone through ``repeat`` times with a trace each;
        ``first_step`` is where a resumed run counts on. ``tables`` are TorchRec's EmbeddingBagConfigs,
        ``mean_ids`` the mean number of ids per example and feature, ``plan`` the ShardingPlan
        (``model.plan``), ``estimates`` the planner's sharding options. ``measure`` is the sharded model whose
        ids and bytes per table are to be counted in the profiled steps. ``config`` is made of JSON types.
        ``run_id`` is the folder's name by default.
        """
        self._folder = Path(folder)
        self._place = find_place(os.environ)
        self._schedule = Schedule(wait, warmup, active, repeat, first_step)
        self._run_id = run_id or self._folder.name
        self._batch_per_rank = batch_per_rank
        self._tables, self._mean_ids = tables, mean_ids
        self._plan, self._estimates, self._config = plan, estimates, config
        self._measure = measure
        self._meter: TableMeter | None = None
        self._described: dict[str, object] = {}
        self._extra: dict[str, object] = {}
        self._steps: dict[int, tuple[int, int | None]] = {}  # step -> (nanoseconds, examples)
        self._numbers: dict[int, dict[str, float | None]] = {}  # step -> what was measured in it
        self._step = first_step
        self._windows = 0
        self._step_began_ns = 0
        self._started = False
        self._profiler: Any = None

    @property
    def trace_file(self) -> Path:
        """Where this rank's trace goes; with ``repeat``, the one of the window now open."""
        window = f".window{self._windows}" if self._windows else ""
        return self._folder / f"rank{self._place.rank}{window}.pt.trace.json.gz"

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
        self._close_window()
        if self._started:
            self._attempt("write run.json", self._write_manifest)
            self._attempt("tidy up", self._remove_joined_counts)

    def step(self, *, examples: int | None = None, **measured: float | None) -> None:
        """End a step. ``examples`` is this rank's count where it differs from ``batch_per_rank``.

        Further numbers (``loss=...``) are kept per step; those of rank 0 end up in run.json.
        """
        duration_ns = time.perf_counter_ns() - self._step_began_ns
        self._steps[self._step] = (duration_ns, self._batch_per_rank if examples is None else examples)
        if measured:
            self.measured(self._step, **measured)
        if len(self._steps) > KEPT_STEPS:
            oldest = next(iter(self._steps))
            del self._steps[oldest]
            self._numbers.pop(oldest, None)
        self._step += 1
        if self._started:
            self._advance()
        self._step_began_ns = time.perf_counter_ns()  # writing a trace belongs to no step

    def measured(self, step: int, **values: float | None) -> None:
        """Add numbers to a step that was measured later, for instance losses read every 20 steps.

        A step that is no longer kept is ignored; the step that is under way can be named too.
        """
        if step == self._step or step in self._steps:
            self._numbers.setdefault(step, {}).update(finite(values))

    def record(self, name: str, value: object) -> None:
        """Add ``name`` to run.json.

        ``value`` is made of JSON types. Fields of the schema cannot be replaced.
        """
        self._extra[name] = value

    def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._described = self._describe()
        if self._measure is not None:
            self._meter = TableMeter(self._measure)
            self._counts_file(self._place.rank).unlink(missing_ok=True)  # of an earlier run in this folder
        self._started = True
        self._advance()

    def _advance(self) -> None:
        """Do what the step that begins now wants of the profiler.

        Outside a window there is none: a profiler that only counts steps costs as much per step as all the
        rest here together.
        """
        if self._profiler is not None:
            if self._meter is not None and self._meter.counting:
                self._meter.steps += 1
            if not self._attempt("profile a step", self._profiler.step):
                self._profiler = None  # half a transition leaves it in a state in which torch crashes
            elif self._schedule.closes(self._step):
                self._close_window()
        if self._schedule.opens(self._step):
            self._attempt("start the profiler", self._open_window)
        if self._meter is not None:
            self._meter.counting = self._profiler is not None and self._schedule.profiles(self._step)

    def _open_window(self) -> None:
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        profiler = torch.profiler.profile(
            activities=activities,
            schedule=self._schedule.for_profiler(self._step),
            on_trace_ready=self._on_trace_ready,
            record_shapes=True,  # sizes of collectives come from here
            with_stack=False,  # it makes every Python frame an event: larger files, slower steps
        )
        profiler.step_num = self._step  # ProfilerStep#N is then step N of the training
        profiler.start()
        self._profiler = profiler

    def _close_window(self) -> None:
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            self._attempt("stop the profiler", profiler.stop)

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
            "planner_estimates": None if self._estimates is None else describe_estimates(self._estimates),
            "config": None if self._config is None else dict(self._config),
            "versions": versions(),
            "environment": allowed_environment(os.environ),
            "capture": self._schedule.describe(),
        }

    def _on_trace_ready(self, profiler: Any) -> None:
        self._attempt("write the trace", lambda: write_trace(self.trace_file, profiler.export_chrome_trace))
        self._windows += 1
        if self._meter is not None:
            counted = self._meter.describe()
            self._attempt(
                "write its counts", lambda: write_json(self._counts_file(self._place.rank), counted)
            )
        # Also here and not only at the end: a job that is killed later still has its manifest.
        self._attempt("write run.json", self._write_manifest)

    def _counts_file(self, rank: int) -> Path:
        # Hidden, so that nobody who collects traces takes it for one; rank 0 joins them in run.json. A file
        # and not a collective: a rank that is gone or has no disk would keep the others waiting.
        return self._folder / f".rank{rank}.counts.json"

    def _write_manifest(self) -> None:
        if self._place.rank == 0:
            steps = [self._describe_step(step, *timed) for step, timed in self._steps.items()]
            content = {**self._extra, **self._described, "measured_tables": self._joined_counts()}
            write_json(self._folder / "run.json", {**content, "steps": steps})

    def _describe_step(self, step: int, duration_ns: int, examples: int | None) -> dict[str, object]:
        seconds = duration_ns / 1e9
        rate = None if examples is None else round(examples * self._place.world_size / seconds, 3)
        timed = {"step": step, "wall_ms": round(seconds * 1e3, 3), "examples_per_s": rate}
        return {**timed, **self._numbers.get(step, {})}

    def _joined_counts(self) -> dict[str, object] | None:
        if self._meter is None:
            return None
        found = {
            rank: json.loads(path.read_text(encoding="utf-8"))
            for rank in range(self._place.world_size)
            if (path := self._counts_file(rank)).exists()
        }
        return merge(found, self._place.world_size)

    def _remove_joined_counts(self) -> None:
        if self._meter is not None and self._place.rank == 0:
            for rank in range(self._place.world_size):
                self._counts_file(rank).unlink(missing_ok=True)

    def _attempt(self, what: str, action: Callable[[], object]) -> bool:
        """Run ``action``; any failure becomes a note. Return whether it worked.

        Everything is caught because no defect of a profiler, a disk or this package is worth a training run.
        """
        try:
            action()
        except Exception as error:
            note = (
                f"traceinsight.capture: rank {self._place.rank} could not {what} in {self._folder}: {error}"
            )
            sys.stderr.write(f"{note}; training goes on without it\n")
            return False
        return True
