"""The context manager that owns the profiler."""

from __future__ import annotations

import contextlib
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
from traceinsight.capture.manifest import SCHEMA_VERSION, describe_estimates, describe_plan, describe_tables
from traceinsight.capture.meter import TableMeter, merge
from traceinsight.capture.schedule import Schedule
from traceinsight.capture.session import Watch, other_profiler
from traceinsight.capture.steps import StepLog
from traceinsight.capture.values import as_json

MOST_NOTES = 50
"""A configuration of a thousand wrong values shall not fill the log."""


class Capture:
    """One rank's capture of one run.

    Enter it around the training loop, call ``step`` at the end of every step.

    Every rank enters it with the same arguments, after ``init_process_group``; nothing is sent between ranks.
    After ``wait`` + ``warmup`` steps it profiles ``active`` steps and writes
    ``<folder>/rank<RANK>.pt.trace.json.gz``; rank 0 also writes ``<folder>/run.json``.

    Nothing that goes wrong inside the ``with`` ends the training: a note goes to stderr and training goes on
    without that file, or without that value.
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
        ids and bytes per table are to be counted in the profiled steps. ``config`` is made of JSON types, or
        of what can be told in them. ``run_id`` is the folder's name by default.

        Raises ValueError for numbers of steps that profile nothing, TypeError for no numbers.
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
        self._log = StepLog(self._place.world_size, self._left_out)
        self._notes: dict[str, str] = {}  # what is said once -> its form for run.json
        self._step = first_step
        self._windows = 0
        self._step_began_ns = 0
        self._started = False
        self._profiler: Any = None
        self._watch = Watch(self._give_way)

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
            if self._place.rank == 0 and (missing := self._schedule.shortfall(self._step)):
                self._note(missing)
            self._attempt("write run.json", self._write_manifest)
            self._attempt("tidy up", self._remove_joined_counts)

    def step(self, *, examples: Any = None, **measured: Any) -> None:
        """End a step. ``examples`` is this rank's count where it differs from ``batch_per_rank``.

        Further numbers (``loss=...``) are kept per step; those of rank 0 end up in run.json. A number may be
        a tensor of one element: it is copied on its device and read when a file is written, so that no step
        waits for it.
        """
        duration_ns = time.perf_counter_ns() - self._step_began_ns
        self._log.end(self._step, duration_ns, self._batch_per_rank if examples is None else examples)
        if measured:
            self._add(self._step, measured)
        self._step += 1
        if self._started:
            self._advance()
        self._step_began_ns = time.perf_counter_ns()  # writing a trace belongs to no step

    def measured(self, step: int, **values: Any) -> None:
        """Add numbers to a step that was measured later, for instance losses read every 20 steps.

        A step that is no longer kept is ignored; the step that is under way can be named too.
        """
        self._attempt("keep what was measured", lambda: self._add(int(step), values))

    def record(self, name: str, value: object) -> None:
        """Add ``name`` to run.json.

        ``value`` is made of JSON types, or of what can be told in them. Fields of the schema cannot be
        replaced.
        """
        self._extra[str(name)] = value

    def _add(self, step: int, values: Mapping[str, Any]) -> None:
        # Rank 0 writes run.json: what others measured is not even copied.
        if self._place.rank == 0 and (step == self._step or step in self._log):
            self._log.add(step, values)

    def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._described = self._describe()
        if self._measure is not None:
            self._attempt("count ids per table", self._start_counting)
        self._started = True
        self._advance()

    def _start_counting(self) -> None:
        self._counts_file(self._place.rank).unlink(missing_ok=True)  # of an earlier run in this folder
        assert self._measure is not None
        self._meter = TableMeter(
            self._measure, lambda error: self._note(f"could not count ids per table: {error}")
        )

    def _advance(self) -> None:
        """Do what the step that begins now wants of the profiler.

        Outside a window there is none: a profiler that only counts steps costs as much per step as all the
        rest here together.
        """
        if self._profiler is not None:
            if self._meter is not None and self._meter.counting:
                self._meter.steps += 1
            with self._watch.own():
                worked = self._attempt("profile a step", self._profiler.step)
            if not worked:
                self._drop_profiler()  # half a transition leaves it in a state in which torch crashes
            elif self._schedule.closes(self._step):
                self._close_window()
        if self._schedule.opens(self._step):
            self._attempt("start the profiler", self._open_window)
        if self._meter is not None:
            self._meter.counting = self._profiler is not None and self._schedule.profiles(self._step)

    def _open_window(self) -> None:
        if doing := other_profiler():
            raise RuntimeError(
                f"another torch profiler {doing}, and a process can have only one at a time: close it before "
                f"step {self._step}"
            )
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
        self._watch.start()

    def _close_window(self) -> None:
        if (profiler := self._drop_profiler()) is not None:
            self._attempt("stop the profiler", profiler.stop)

    def _drop_profiler(self) -> Any:
        """Use the profiler no more, and return it."""
        self._watch.stop()
        profiler, self._profiler = self._profiler, None
        return profiler

    def _give_way(self, same_thread: bool) -> None:
        """Close the window before another profiler takes its session away."""
        self._note(
            f"another torch profiler was started in step {self._step}, and a process can have only one at a "
            "time: the window ended there"
        )
        began_ns = time.perf_counter_ns()
        if same_thread:
            self._close_window()
        else:  # a profiler can be stopped by its own thread alone; its results are lost
            self._drop_profiler()
        self._step_began_ns += time.perf_counter_ns() - began_ns  # writing a trace belongs to no step

    def _describe(self) -> dict[str, object]:
        fields: dict[str, Callable[[], object]] = {
            "schema_version": lambda: SCHEMA_VERSION,
            "run_id": lambda: self._run_id,
            "started": lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "world_size": lambda: self._place.world_size,
            "nodes": self._place.nodes,
            "batch_per_rank": lambda: self._batch_per_rank,
            "tables": lambda: describe_tables(self._tables, self._mean_ids),
            "sharding_plan": lambda: None if self._plan is None else describe_plan(self._plan),
            "planner_estimates": lambda: (
                None if self._estimates is None else describe_estimates(self._estimates)
            ),
            "config": lambda: self._config,
            "versions": versions,
            "environment": lambda: allowed_environment(os.environ),
        }
        return {name: self._told(name, tell) for name, tell in fields.items()}

    def _told(self, name: str, tell: Callable[[], object]) -> object:
        """Return a field of run.json; None, and a note, where it cannot be told."""
        try:
            return as_json(tell(), name, self._left_out)
        except Exception as error:  # a plan or a table is whatever the job made of it
            self._left_out(name, str(error))
            return None

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
            extra = {name: as_json(value, name, self._left_out) for name, value in self._extra.items()}
            content = {**extra, **self._described}
            content["measured_tables"] = self._told("measured_tables", self._joined_counts)
            steps = self._log.describe()
            capture = {**self._schedule.describe(), "notes": list(self._notes.values())}
            write_json(self._folder / "run.json", {**content, "capture": capture, "steps": steps})

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
            # An error may name files, and run.json is made to be shared.
            self._note(
                f"could not {what} in {self._folder}: {error}; training goes on without it",
                f"could not {what}",
            )
            return False
        return True

    def _left_out(self, place: str, why: str) -> None:
        self._note(f"left {place} out of run.json: {why}")

    def _note(self, text: str, shared: str | None = None) -> None:
        """Say something once, on stderr and (as ``shared``) in run.json."""
        if text in self._notes or len(self._notes) >= MOST_NOTES:
            return
        self._notes[text] = shared or text
        with contextlib.suppress(Exception):  # stderr may be closed, or on the full disk
            sys.stderr.write(f"traceinsight.capture: rank {self._place.rank}: {text}\n")
