"""Write docs/json.md and docs/diagnosis.schema.json from the structs of ``traceinsight.diagnosis``.

``python docs/generate_json_md.py`` writes both; with ``--check`` it writes nothing and fails when one is
stale. A field's meaning is the comment on its line, else what its name means in its struct (``IN_STRUCT``),
else what its name means everywhere (``COMMON``).
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
import types
import typing
from pathlib import Path

import msgspec

from traceinsight import diagnosis
from traceinsight.diagnosis import SCHEMA_VERSION, Diagnosis

HERE = Path(__file__).parent

COMMON = {
    "algorithm_gbps": "algorithm bandwidth, GB/s, as nccl-tests define it; null when unknown",
    "action": "what to change",
    "backend": "communication library: nccl, gloo, ...; null when not recorded",
    "bus_gbps": "bus bandwidth, GB/s, as nccl-tests define it; null when unknown",
    "busy_ns": "time the operation ran, exposed or not",
    "bytes_per_step": "payload one rank sends per step, bytes; null when not recorded",
    "capture_hint": "the capture setting that would allow to judge",
    "cause": "why: compute, input, host, host_sync, allocator, copy, unknown",
    "clean": "rules that looked and found nothing",
    "clocks": "clock of every rank against the reference",
    "code": "stable kebab-case identifier",
    "collectives": "every collective of the analysed steps",
    "comm_ns": "communication, exposed or not",
    "communication": "collectives by kind",
    "compute_ns": "at least one compute kernel runs",
    "confidence": "how sure the judgment is",
    "copy_ns": "memory copies",
    "count": "how many events or files it concerns; null where counting makes no sense",
    "count_per_step": "how many per step, mean",
    "cpu_ns": "between the CPU marks of the step; null when not recorded",
    "data_quality": "what to know about the data",
    "device_ns": "window of the step on the device; null when not recorded",
    "dropped_steps": "captured steps left out of every number",
    "dtype": "element type as the profiler writes it; null when not recorded",
    "evidence": "the numbers it rests on",
    "expected": "best estimate",
    "exposed_comm_ns": "communication while nothing computes",
    "exposed_comm_transfer_ns": "exposed communication after the last member's arrival",
    "exposed_comm_wait_ns": "exposed communication before the last member's arrival",
    "exposed_copy_ns": "copies while nothing computes or communicates",
    "exposed_ns": "time while nothing computes",
    "exposed_transfer_ns": "of the exposed time: after the last member's arrival",
    "exposed_unsplit_ns": "of the exposed time: peers not captured or not matched, so it cannot be split",
    "exposed_wait_ns": "of the exposed time: before the last member's arrival",
    "family": "gemm, embedding, attention, communication, copy, ...",
    "file": "the file it concerns, as the user named it; null when none",
    "files": "files it was read from",
    "findings": "bottlenecks; the order to act on is `roadmap`",
    "forward": "communication share of forward, per rank and step",
    "gain": "what the remedy would bring; null when it cannot be predicted",
    "generator": "the program that wrote the document",
    "group": "process group",
    "high": "upper bound",
    "idle_ns": "nothing runs on the device",
    "kernels": "device time by kernel family",
    "kind": "`ceiling`: the time that would vanish at best; `replayed`: predicted by replay",
    "label": "annotation that launched it; null when there is none",
    "last_rank": "who arrived last; null when that cannot be told",
    "low": "lower bound",
    "message": "one sentence for a person",
    "metric": "name of the number",
    "name": "name",
    "not_judged": "questions the data could not answer",
    "op": "operation: all_to_all, all_reduce, ...",
    "other_runs": "runs found among the files and not analysed",
    "partition": "where the step window went, per rank and step",
    "persistence": "whether it recurs over steps",
    "phase": "phase of the step that launched it",
    "phases": "the step by phase, per rank and step",
    "quality_risk": "risk to model quality, and the check to run",
    "rank": "rank of the process; null when it concerns no single one",
    "ranks": "ranks concerned",
    "reason": "why",
    "residual_ns": "how well the offset is known; null when not tied to the others",
    "roadmap": "rules in the order to apply their remedies",
    "rule": "id of the rule (`traceinsight rules`)",
    "run": "the analysed run",
    "schema_version": "version of this contract",
    "severity": "how grave it is",
    "simulated": "whether the traces are simulated",
    "size_imbalance": "max/mean of bytes over ranks, for all-to-all-v; null when sizes are unknown",
    "source": "how it was found",
    "span_ns": "device span of forward, the denominator of its shares",
    "speedup": "step time now / step time then",
    "step": "step number as the trace counts",
    "step_times": "length of every step on every rank",
    "steps_judged": "steps looked at",
    "steps_late": "of those, steps in which the group was late",
    "step_ns": "time saved per step, ns",
    "stragglers": "ranks that make the others wait; empty when none is established",
    "summary": "which number stayed below which threshold",
    "title": "the finding in a sentence",
    "top_kernels": "names of the kernels with the largest time",
    "unmatched_ranks": "members whose part was not found",
    "value": "the number, in `unit`",
    "verdict": "the answer in one sentence",
    "version": "version",
    "window_ns": "length of the step window: the denominator of its parts",
    "world_size": "number of ranks in the job; null when not recorded",
}

IN_STRUCT = {
    "Run": {
        "ranks": "ranks whose traces were read",
        "missing_ranks": "ranks of the world whose traces were not",
        "steps": "the steady-state steps every number rests on",
        "step_source": "how steps were found",
    },
    "Partition": {
        "exposed_comm_unsplit_ns": "exposed communication whose peers were not captured or not matched",
        "idle_by_cause_ns": "idle time by cause; sums to `idle_ns`",
    },
    "ForwardShare": {"largest_collective": "the one with the largest time; null when there is none"},
    "LargestCollective": {"share": "of the forward span"},
    "CommunicationRow": {"exposed_share": "`exposed_ns` against the mean step window"},
    "Collective": {
        "ranks": "ranks whose part was found",
        "bytes": "payload one rank sends, largest over ranks; null when not recorded",
        "transfer_ns": "end - last arrival; null when a member's part is missing",
        "wait_ns": "last arrival - own arrival; a lower bound when `unmatched_ranks` is not empty",
    },
    "Clock": {"offset_ns": "how far the clock runs ahead; null when not tied to the others"},
    "Straggler": {
        "last_share": "share of synchronising collectives in which one of them came last",
        "lateness_ns": "behind the last of the other ranks, per collective in which they came last",
        "ceiling_ns": "step time freed if they came with the next rank",
    },
    "KernelFamilyRow": {
        "busy_ns": "sum of kernel durations per step, mean over ranks",
        "share": "of the summed device time of all families (streams overlap: not of the window)",
    },
    "Evidence": {"where": "the place of the number and, for a share, its denominator"},
}

_SIMPLE = {int: "integer", float: "number", str: "string", bool: "boolean", types.NoneType: "null"}

_INTRODUCTION = """# The JSON document

<!-- Written by docs/generate_json_md.py; change the structs of traceinsight/diagnosis/ instead. -->

`traceinsight analyze TRACES --format json` writes one object. Its version is `schema_version`: {version}.
Fields are added without a new version; none is renamed, removed or given another meaning. The JSON Schema of
the same structs is [diagnosis.schema.json](diagnosis.schema.json). How each number is computed stands in
[metrics.md](metrics.md).

- Durations end in `_ns` and are nanoseconds; sizes are bytes; shares are 0 to 1.
- `null` means "not measured". It never means zero, and zero never means "not measured".
- Keys of objects that map ranks are the rank as text: `"wait_ns": {{"0": 1200, "1": 0}}`.
- Gains of different findings overlap. Do not add them.

Read it back in Python, typed and validated:

```python
import msgspec
from traceinsight.diagnosis import Diagnosis

diagnosis = msgspec.json.decode(open("report.json", "rb").read(), type=Diagnosis)
print(diagnosis.verdict)
```
"""


def structs() -> list[type[msgspec.Struct]]:
    """The document first, then what it consists of, in order of appearance."""
    found: list[type[msgspec.Struct]] = [Diagnosis]
    for struct in found:
        for hint in typing.get_type_hints(struct).values():
            found += [one for one in _parts(hint) if one not in found]
    return found


def _parts(hint: object) -> list[type[msgspec.Struct]]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return [hint]
    return [part for argument in typing.get_args(hint) for part in _parts(argument)]


def type_text(hint: object) -> str:
    """A type as a reader of JSON calls it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        inside = type_text(arguments[0])
        return f"({inside})[]" if " or " in inside else f"{inside}[]"
    if origin is dict:
        key = "rank" if arguments[0] is int else "name"
        return f"object: {key} to {type_text(arguments[1])}"
    if origin is typing.Literal:
        return ", ".join(f'"{value}"' for value in arguments)
    if origin in {types.UnionType, typing.Union}:
        return " or ".join(type_text(argument) for argument in arguments)
    if hint in _SIMPLE:
        return _SIMPLE[hint]  # type: ignore[index]
    name = typing.cast("type", hint).__name__
    return f"[{name}](#{name.lower()})"


def meanings(struct: type[msgspec.Struct]) -> dict[str, str]:
    """What each field means; an empty text where nothing says it."""
    lines = inspect.getsource(struct).splitlines()
    tree = ast.parse(textwrap.dedent("\n".join(lines)))
    body = typing.cast("ast.ClassDef", tree.body[0]).body
    comments = {
        node.target.id: lines[node.lineno - 1].partition("# ")[2]
        for node in body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    own = IN_STRUCT.get(struct.__name__, {})
    return {
        name: _json_words(comments.get(name) or own.get(name) or COMMON.get(name, ""))
        for name in struct.__struct_fields__
    }


def _json_words(text: str) -> str:
    """Python's words for a reader who may never see Python."""
    return re.sub(r"\bNone\b", "null", text.replace("``", "`"))


def markdown() -> str:
    """The whole page."""
    parts = [_INTRODUCTION.format(version=SCHEMA_VERSION)]
    for struct in structs():
        doc = _json_words(inspect.getdoc(struct) or "")
        hints = typing.get_type_hints(struct)
        rows = [
            f"| `{name}` | {type_text(hints[name])} | {meaning.replace('|', '/')} |"
            for name, meaning in meanings(struct).items()
        ]
        table = "\n".join(["| field | type | meaning |", "|---|---|---|", *rows])
        parts.append(f"## {struct.__name__}\n\n{doc}\n\n{table}\n")
    causes = ", ".join(f"`{cause}`" for cause in diagnosis.CAUSES)
    parts.append(f"Keys of `idle_by_cause_ns`: {causes}.\n")
    return "\n".join(parts)


def schema() -> str:
    """JSON Schema, draft 2020-12."""
    body = msgspec.json.schema(Diagnosis)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "traceinsight diagnosis"}
    return json.dumps(head | body, indent=2) + "\n"


def main(arguments: list[str]) -> int:
    """Write the files, or say with the exit code whether they are current."""
    stale = [
        path
        for path, text in ((HERE / "json.md", markdown()), (HERE / "diagnosis.schema.json", schema()))
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" in arguments:
        sys.stderr.writelines(f"stale: {path.name}; run python docs/generate_json_md.py\n" for path in stale)
        return 1 if stale else 0
    (HERE / "json.md").write_text(markdown(), encoding="utf-8")
    (HERE / "diagnosis.schema.json").write_text(schema(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
