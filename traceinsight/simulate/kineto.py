"""One rank's trace as Kineto writes it (JSON), with the fields that carry information and no others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from traceinsight.base.hardware import GPUS
from traceinsight.simulate.machine import AUTOGRAD, DEVICE_KINDS, MAIN, Meeting, Row

if TYPE_CHECKING:
    from traceinsight.simulate.run import SimulatedRun

BASE_TIME_NS = 1_760_000_000_000_000_000
"""``baseTimeNanoseconds``: a fixed moment, so that a run can be repeated byte for byte."""

START_NS = 100_000_000_000
"""The capture starts this long after the base time: more than any clock skew."""

_FLOW = '"cat":"ac2g","name":"ac2g"'
_CATEGORY = {
    "annotation": "user_annotation",
    "cpu_op": "cpu_op",
    "runtime": "cuda_runtime",
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
}
_CBID = {
    "cudaLaunchKernel": 211,
    "cudaLaunchKernelExC": 430,
    "cudaMemcpyAsync": 41,
    "cudaStreamSynchronize": 131,
    "cudaStreamWaitEvent": 147,
    "cudaEventRecord": 135,
}


class TraceWriter:
    """Turns a run into the text of each rank's trace; what all ranks share is prepared once."""

    def __init__(self, run: SimulatedRun) -> None:
        self._run = run
        self._spec = run.spec
        self._hip = run.hip
        self._rows = [row for row in run.rows if run.spec.capture.operators or not _is_plain_operator(row)]
        self._starts = np.array([row.start_ns for row in self._rows])
        self._durations = np.array([row.dur_ns for row in self._rows])
        self._heads = [self._head(row) for row in self._rows]
        self._columns = np.array([at for at, row in enumerate(self._rows) if row.kind in DEVICE_KINDS])

    def text(self, rank: int) -> str:
        """The whole file of one rank."""
        events = ",\n".join(self._events(rank))
        header = json.dumps(self._header(rank), separators=(", ", ": "))
        return f'{header[:-1]}, "traceEvents": [\n{events}\n]}}\n'

    def _head(self, row: Row) -> str:
        name = row.name.replace("cuda", "hip", 1) if self._hip and row.kind == "runtime" else row.name
        return f'{{"ph":"X","cat":"{_CATEGORY[row.kind]}","name":{json.dumps(name)},"pid":'

    def _events(self, rank: int) -> Iterator[str]:
        places = _Places(rank, self._spec.cluster.gpus_per_node)
        yield from places.metadata(self._rows)
        shift = START_NS + int(self._run.clock_offset_ns[rank])
        starts = (self._starts[:, rank] + shift).tolist()
        durations = self._durations[:, rank].tolist()
        lost = self._run.lost_events(rank, len(self._rows), self._columns)
        flows = self._spec.capture.flows
        begun = int(self._run.capture_start_ns[rank]) + shift
        first = self._spec.capture.first_step
        for at, row in enumerate(self._rows):
            stray = row.step < first  # launched before the capture: Kineto knows no launch, and no arguments
            if at in lost or (stray and starts[at] + durations[at] <= begun):
                continue
            where = places.of(row.lane)
            begin = _micros(starts[at])
            args = self._args(row, rank, stray)
            yield f'{self._heads[at]}{where},"ts":{begin},"dur":{_micros(durations[at])}{args}}}'
            if flows and row.kind == "runtime" and row.external_id:
                yield f'{{"ph":"s","id":{row.correlation},"pid":{where},"ts":{begin},{_FLOW}}}'
            elif flows and row.kind in DEVICE_KINDS:
                yield f'{{"ph":"f","id":{row.correlation},"pid":{where},"ts":{begin},{_FLOW},"bp":"e"}}'
        if self._spec.capture.gpu_annotations:
            yield from self._mirrored(places, starts, durations)

    def _args(self, row: Row, rank: int, stray: bool) -> str:
        collective = ""
        if row.collective is not None and not stray:
            collective = "," + self._collective_args(self._run.collectives[row.collective], rank)
        if row.kind in DEVICE_KINDS:
            device = rank % self._spec.cluster.gpus_per_node
            size = f',"bytes":{int(row.size_bytes[rank])}' if row.size_bytes is not None else ""
            issued_by = "" if stray else f'"External id":{row.external_id},'
            return (
                f',"args":{{{issued_by}"device":{device},"context":1,"stream":{row.lane},'
                f'"correlation":{row.correlation}{size}{collective}}}'
            )
        if row.kind == "runtime":
            issued_by = f'"External id":{row.external_id},' if row.external_id else ""
            return f',"args":{{{issued_by}"cbid":{_CBID[row.name]},"correlation":{row.correlation}}}'
        return f',"args":{{"External id":{row.external_id}{collective}}}'

    def _collective_args(self, meeting: Meeting, rank: int) -> str:
        payload, limit = meeting.payload, self._spec.capture.list_limit
        group = next(at for at, ranks in enumerate(payload.members) if rank in ranks)
        members = payload.members[group]
        sent = received = "[]"
        if payload.splits is not None:
            position = members.index(rank)
            sent = _list_text(payload.splits[position].tolist(), limit)
            received = _list_text(payload.splits[:, position].tolist(), limit)
        sequence = f',"Seq":{meeting.sequence}' if self._spec.capture.sequence_numbers else ""
        return (
            f'"Collective name":"{payload.operation}","In msg nelems":{int(payload.in_elements[rank])},'
            f'"Out msg nelems":{int(payload.out_elements[rank])},"Group size":{len(members)},'
            f'"dtype":"{payload.dtype}","In split size":"{sent}","Out split size":"{received}",'
            f'"Process Group Name":"{payload.group_names[group]}",'
            f'"Process Group Description":"{payload.description}",'
            f'"Process Group Ranks":"{_list_text(members, limit)}"{sequence}'
        )

    def _mirrored(self, places: _Places, starts: list[int], durations: list[int]) -> Iterator[str]:
        """Each annotation over the kernels launched inside it, on each stream."""
        for at, row in enumerate(self._rows):
            if row.kind != "annotation":
                continue
            inside: dict[int, list[int]] = {}
            for other in range(at + 1, min(at + 1 + row.encloses, len(self._rows))):
                if self._rows[other].kind == "kernel":
                    inside.setdefault(int(self._rows[other].lane), []).append(other)
            for stream, kernels in sorted(inside.items()):
                begin = starts[kernels[0]]
                end = max(starts[one] + durations[one] for one in kernels)
                yield (
                    f'{{"ph":"X","cat":"gpu_user_annotation","name":{json.dumps(row.name)},'
                    f'"pid":{places.of(stream)},"ts":{_micros(begin)},"dur":{_micros(end - begin)},'
                    f'"args":{{"External id":{row.external_id}}}}}'
                )

    def _header(self, rank: int) -> dict[str, object]:
        spec, gpu = self._spec, GPUS[self._spec.cluster.gpu]
        groups = self._run.process_groups(rank)
        return {
            "schemaVersion": 1,
            "simulated": True,
            "deviceProperties": [
                {
                    "id": ordinal,
                    "name": gpu.name,
                    "totalGlobalMem": int(gpu.memory_gb * 1e9),
                    "numSms": gpu.sm_count,
                }
                for ordinal in range(spec.cluster.gpus_per_node)
            ],
            "distributedInfo": {
                "backend": "nccl",
                "rank": rank,
                "world_size": spec.world_size,
                "pg_count": len(groups),
                "pg_config": groups,
            },
            "record_shapes": 1,
            "trace_id": f"{spec.seed:016X}{rank:016X}",
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_TIME_NS,
            "host_name": f"node{rank // spec.cluster.gpus_per_node}",
        }


class _Places:
    """``pid`` and ``tid`` of every lane of a rank, as text between two commas."""

    def __init__(self, rank: int, gpus_per_node: int) -> None:
        self._rank = rank
        self._gpu = rank % gpus_per_node
        self._process = 10_000 + self._gpu
        self._known: dict[str | int, str] = {
            MAIN: f'{self._process},"tid":{self._process}',
            AUTOGRAD: f'{self._process},"tid":{self._process + 1000}',
        }

    def of(self, lane: str | int) -> str:
        if lane not in self._known:
            self._known[lane] = f'{self._gpu},"tid":{lane}'
        return self._known[lane]

    def metadata(self, rows: Sequence[Row]) -> Iterator[str]:
        streams = sorted({int(row.lane) for row in rows if row.kind in DEVICE_KINDS})
        threads = {MAIN: "python", AUTOGRAD: f"pt_autograd_{self._gpu}"}
        yield self._meta("process_name", f'{self._process},"tid":0', "name", "python")
        yield self._meta("process_labels", f'{self._process},"tid":0', "labels", "CPU")
        yield self._meta("process_name", f'{self._gpu},"tid":0', "name", "python")
        yield self._meta("process_labels", f'{self._gpu},"tid":0', "labels", f"GPU {self._gpu}")
        for lane, name in threads.items():
            yield self._meta("thread_name", self.of(lane), "name", name)
        for stream in streams:
            yield self._meta("thread_name", self.of(stream), "name", f"stream {stream} ")

    @staticmethod
    def _meta(name: str, where: str, key: str, value: str) -> str:
        return f'{{"ph":"M","name":"{name}","pid":{where},"ts":0,"args":{{"{key}":"{value}"}}}}'


def _is_plain_operator(row: Row) -> bool:
    return row.kind == "cpu_op" and row.collective is None


def _micros(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def _list_text(values: Sequence[int], limit: int) -> str:
    """A list as PyTorch writes it in collective arguments: long ones keep their head and their last entry."""
    if len(values) <= limit:
        return f"[{', '.join(map(str, values))}]"
    return f"[{', '.join(map(str, values[: limit - 1]))}, ..., {values[-1]}]"
