"""Write docs/json.md and the schemas beside it from the structs of ``traceinsight.diagnosis``.

``python docs/generate_json_md.py`` writes all; with ``--check`` it writes nothing and fails when one is
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
from traceinsight.diagnosis.comparison import Comparison
from traceinsight.diagnosis.prediction import WhatIf
from traceinsight.diagnosis.scaling import Scaling

HERE = Path(__file__).parent

DOCUMENTS: dict[type[msgspec.Struct], str] = {
    Diagnosis: "`traceinsight analyze TRACES --format json`",
    Comparison: "`traceinsight compare BEFORE AFTER --format json`",
    WhatIf: "`traceinsight whatif TRACES --edit EDIT --format json`",
    Scaling: "`traceinsight scaling RUN RUN... --format json`",
}
"""What each command writes; its schema is ``<name>.schema.json``."""

COMMON = {
    "all_to_all_gbps": "highest bus bandwidth of an all-to-all that the link allows, GB/s; null when unknown",
    "all_to_all_matrix": "bytes from rank to rank by kind of all-to-all; empty without split sizes",
    "link": "the slowest link that the group crosses; null when unknown",
    "links": "what the datasheets promise, by process group",
    "ring_gbps": "highest bus bandwidth of other collectives that the link allows, GB/s; null when unknown",
    "sent_bytes": "row: sender, column: receiver, in the order of `ranks`, per step; null: not recorded",
    "action": "what to change",
    "after": "the same of AFTER; null where that run has none",
    "after_examples_per_s": "examples per second of the whole job after",
    "after_ns": "median over steps after",
    "after_share": "of AFTER's mean step window",
    "algorithm_gbps": "algorithm bandwidth, GB/s, as nccl-tests define it; null when unknown",
    "backend": "communication library: nccl, gloo, ...; null when not recorded",
    "before": "of BEFORE; null where that run has none",
    "before_examples_per_s": "examples per second of the whole job before",
    "before_ns": "median over steps before",
    "before_share": "of BEFORE's mean step window",
    "bus_gbps": "bus bandwidth, GB/s, as nccl-tests define it; null when unknown",
    "busy_ns": "time the operation ran, exposed or not",
    "bytes_per_step": "payload one rank sends per step, bytes; null when not recorded",
    "capture_hint": "the capture setting that would allow to judge",
    "cause": "why: compute, input, host, host_sync, allocator, copy, unknown",
    "change": "the part's time in both runs",
    "change_ns": "`after_ns` - `before_ns`",
    "change_share": "change against before",
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
    "coverage": "share of cases in which such an interval holds the true change",
    "cpu_ns": "between the CPU marks of the step; null when not recorded",
    "data_quality": "what to know about the data",
    "device_ns": "window of the step on the device; null when not recorded",
    "dropped_steps": "captured steps left out of every number",
    "dtype": "element type as the profiler writes it; null when not recorded",
    "edit": "the edit, as `whatif` takes it",
    "equal_batch": "with AFTER's step scaled to BEFORE's batch; null where batches are equal or not known",
    "error_share": "expected / measured - 1; null where there is nothing to hold it against",
    "evidence": "the numbers it rests on",
    "expected": "best estimate",
    "exposed": "`exposed_ns` in both runs",
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
    "gates": "results of `--fail-on`",
    "generator": "the program that wrote the document",
    "group": "process group",
    "high": "upper bound",
    "high_ns": "upper bound of `change_ns`; null when not judged",
    "high_share": "upper bound of `share`",
    "hints": "edits that seem to lie between the runs",
    "idle_by_cause": "idle time by cause, in both runs",
    "idle_ns": "nothing runs on the device",
    "inside_interval": "whether the measured step lies within `step_ns`",
    "judged": "whether the steps tell how large the noise is",
    "kernels": "device time by kernel family",
    "load_balance": "how evenly each measure of load is spread over the ranks",
    "kind": "`ceiling`: the time that would vanish at best; `replayed`: predicted by replay",
    "label": "annotation that launched it; null when there is none",
    "last_rank": "who arrived last; null when that cannot be told",
    "limit_share": "what was allowed, against the step time before",
    "low": "lower bound",
    "low_ns": "lower bound of `change_ns`; null when not judged",
    "low_share": "lower bound of `share`",
    "measured_ns": "step time of AFTER; null for all but the last edit",
    "message": "one sentence for a person",
    "metric": "name of the number",
    "name": "name",
    "not_judged": "questions the data could not answer",
    "notes": "what makes the runs less comparable",
    "op": "operation: all_to_all, all_reduce, ...",
    "other_runs": "runs found among the files and not analysed",
    "outcome": "`not_judged` fails a pipeline as `failed` does",
    "partition": "where the step window went, per rank and step",
    "persistence": "whether it recurs over steps",
    "phase": "phase of the step that launched it",
    "phases": "the step by phase, per rank and step",
    "predictions": "predicted against measured; empty without `--edit`",
    "presence": "whether it was found in each run",
    "quality_risk": "risk to model quality, and the check to run",
    "rank_loads": "what the embedding tables cost each rank; empty when nothing is known",
    "rank": "rank of the process; null when it concerns no single one",
    "ranks": "ranks concerned",
    "reason": "why",
    "residual_ns": "how well the offset is known; null when not tied to the others",
    "roadmap": "rules in the order to apply their remedies",
    "rule": "id of the rule (`traceinsight rules`)",
    "run": "the analysed run",
    "schema_version": "version of this contract",
    "severity": "how grave it is",
    "significant": "whether it is beyond the noise and at least 1 % of the step time before",
    "shards": "embedding tables by owner, from the run manifest; empty without one",
    "simulated": "whether the traces are simulated",
    "size_imbalance": "max/mean of bytes over ranks, for all-to-all-v; null when sizes are unknown",
    "source": "how it was found",
    "span_ns": "device span of forward, the denominator of its shares",
    "speedup": "step time now / step time then",
    "step": "step number as the trace counts",
    "step_ns": "time saved per step, ns",
    "step_time": "the step in both runs",
    "step_times": "length of every step on every rank",
    "steps_judged": "steps looked at",
    "steps_late": "of those, steps in which the group was late",
    "stragglers": "ranks that make the others wait; empty when none is established",
    "summary": "which number stayed below which threshold",
    "throughput": "examples per second; null where a batch or world size is not known",
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
    "GroupLink": {
        "nodes": "over how many nodes the group spreads; null when not recorded",
        "ranks": "its members",
        "reason": "why the link is not known; null when it is",
    },
    "AllToAllMatrix": {"ranks": "ranks that take part, in the order of rows and columns"},
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
        "tables": "embedding tables whose lookups make them late, as far as the run manifest tells",
    },
    "ShardRow": {
        "table": "name of the table",
        "share_of_rank": "of the ids the rank looks up; null when not counted",
        "share_of_all": "of the ids all ranks look up; null when not counted",
    },
    "LoadBalance": {"measure": "the field of `rank_loads` it is about"},
    "KernelFamilyRow": {
        "busy_ns": "sum of kernel durations per step, mean over ranks",
        "share": "of the summed device time of all families (streams overlap: not of the window)",
    },
    "Comparison": {
        "before": "the run to compare with",
        "after": "the run that is judged",
        "before_steps": "steps that are compared",
        "after_steps": "steps that are compared",
        "partition": "parts of the step window in both runs",
    },
    "Change": {
        "share": "`change_ns` against the step time before",
        "reason": "why it is not judged, or null",
    },
    "HeldPrediction": {"step_ns": "predicted step time; null where nothing is predicted"},
    "GateResult": {"change_share": "growth against the step time before; null when not measured"},
    "Evidence": {"where": "the place of the number and, for a share, its denominator"},
}

_SIMPLE = {int: "integer", float: "number", str: "string", bool: "boolean", types.NoneType: "null"}

_INTRODUCTION = """# The JSON documents

<!-- Written by docs/generate_json_md.py; change the structs of traceinsight/diagnosis/ instead. -->

Each command with `--format json` writes one object: {documents}. Its version is `schema_version`,
now {version}. Fields are added without a new version; none is renamed, removed or given another meaning. A
JSON Schema of the same structs lies beside this page. How each number is computed stands in
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
    """Each document, followed by what it consists of, in order of appearance."""
    found: list[type[msgspec.Struct]] = []
    for document in DOCUMENTS:
        own = [document]
        for struct in own:
            for hint in typing.get_type_hints(struct).values():
                own += [one for one in _parts(hint) if one not in own]
        found += [one for one in own if one not in found]
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
    documents = ", ".join(f"[{one.__name__}](#{one.__name__.lower()})" for one in DOCUMENTS)
    parts = [_INTRODUCTION.format(version=SCHEMA_VERSION, documents=documents)]
    for struct in structs():
        doc = _json_words(inspect.getdoc(struct) or "")
        if struct in DOCUMENTS:
            link = f"[{schema_name(struct)}]({schema_name(struct)})"
            doc = f"{doc}\n\nWritten by {DOCUMENTS[struct]}; schema: {link}."
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


def schema_name(document: type[msgspec.Struct]) -> str:
    """File of a document's schema."""
    return f"{document.__name__.lower()}.schema.json"


def schema(document: type[msgspec.Struct]) -> str:
    """JSON Schema, draft 2020-12."""
    title = f"traceinsight {document.__name__.lower()}"
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return json.dumps(head | msgspec.json.schema(document), indent=2) + "\n"


def outputs() -> dict[Path, str]:
    """Every file that is generated, with its text."""
    return {HERE / "json.md": markdown()} | {HERE / schema_name(one): schema(one) for one in DOCUMENTS}


def main(arguments: list[str]) -> int:
    """Write the files, or say with the exit code whether they are current."""
    stale = [
        path
        for path, text in outputs().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" in arguments:
        sys.stderr.writelines(f"stale: {path.name}; run python docs/generate_json_md.py\n" for path in stale)
        return 1 if stale else 0
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
