"""Time and memory to load one large trace and break its GPU time down: traceinsight against HTA.

    python benchmarks/load.py --hta-python /path/to/python-with-hta

See README.md beside this file. Every measurement is a process of its own, so peak memory is that of the
task alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCE_TRACE = Path("ranking_a100_rank0_of_16") / "rank0.json.gz"
ID_SHIFT = 100_000_000
ID_KEYS = ("External id", "external id", "correlation", "Ev Idx", "Record function id")
STEP_NAME = re.compile(r"(ProfilerStep#)(\d+)")
LAYOUT: dict[str, dict[str, Any]] = {"pretty": {"indent": 2}, "minified": {"separators": (",", ":")}}

# A measured process prints one JSON object with the seconds per stage; the wrapper adds its peak memory.
MEASURE_OURS = """
import json, resource, sys, time
sys.path.insert(0, sys.argv[2])

def done(stage):
    global began
    stages[stage] = time.perf_counter() - began
    stages[stage + " MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.perf_counter()

stages = {}
began = time.perf_counter()
from traceinsight import api
from traceinsight.analyses.partition import partition
from traceinsight.trace.activity import activities
done("import")
loaded = api.load(sys.argv[1], workers=1)
done("load")
partition(loaded.trace_set, activities(loaded.trace_set))
done("breakdown")
api.diagnose(loaded)
done("whole analysis with replay")
del stages["import MB"]
stages["load and breakdown"] = stages["load"] + stages["breakdown"]
stages["load and whole analysis"] = stages["load"] + stages["whole analysis with replay"]
print(json.dumps(stages))
"""

MEASURE_HTA = """
import json, logging, os, resource, sys, time
logging.disable(logging.CRITICAL)
stages = {}
began = time.perf_counter()
from hta.trace_analysis import TraceAnalysis
stages["import"] = time.perf_counter() - began
began = time.perf_counter()
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=os.path.dirname(sys.argv[1]))
stages["load"] = time.perf_counter() - began
stages["load MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
began = time.perf_counter()
analysis.get_temporal_breakdown(visualize=False)
stages["breakdown"] = time.perf_counter() - began
stages["breakdown MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
stages["load and breakdown"] = stages["load"] + stages["breakdown"]
sys.stdout.write("\\n" + json.dumps(stages) + "\\n")
"""


def corpus_folder() -> Path:
    """The public traces, as the tests find them."""
    named = os.environ.get("TRACEINSIGHT_CORPUS")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "corpus"
    if not (folder / SOURCE_TRACE).is_file():
        raise SystemExit("No public traces: set TRACEINSIGHT_CORPUS.")
    return folder


def repeated(trace: dict[str, Any], target_bytes: int, layout: str) -> Iterator[str]:
    """The trace's text with its events repeated, later and under new ids, up to about ``target_bytes``."""
    events = trace["traceEvents"]
    spans = [event for event in events if event.get("ph") == "X" and event.get("cat") != "Trace"]
    first = min(event["ts"] for event in spans)
    period = max(event["ts"] + event["dur"] for event in spans) - first + 1000
    steps = {int(found[2]) for event in spans if (found := STEP_NAME.fullmatch(event["name"]))}
    header = {key: value for key, value in trace.items() if key != "traceEvents"}
    yield json.dumps(header)[:-1] + ', "traceEvents": ['
    written, turn, separator = 0, 0, "\n"
    while written < target_bytes:
        for event in events:
            if turn and (event.get("ph") == "M" or event.get("cat") == "Trace"):
                continue
            text = separator + json.dumps(shifted(event, turn, period, len(steps)), **LAYOUT[layout])
            separator = ",\n"
            written += len(text)
            yield text
        turn += 1
    yield "]}"


def shifted(event: dict[str, Any], turn: int, period: float, steps: int) -> dict[str, Any]:
    """One event of repetition ``turn``."""
    moved = dict(event)
    if "ts" in moved:
        moved["ts"] += turn * period
    if isinstance(moved.get("id"), int):
        moved["id"] += turn * ID_SHIFT
    if isinstance(moved.get("args"), dict):
        moved["args"] = {
            key: value + turn * ID_SHIFT if key in ID_KEYS and isinstance(value, int) and value > 0 else value
            for key, value in moved["args"].items()
        }
    moved["name"] = STEP_NAME.sub(lambda found: f"{found[1]}{int(found[2]) + turn * steps}", moved["name"])
    return moved


def write_trace(folder: Path, megabytes: int, layout: str) -> tuple[Path, int, int]:
    """Writes the repeated trace as .json.gz; returns its path, the text's size and the number of events."""
    with gzip.open(corpus_folder() / SOURCE_TRACE, "rt") as source:
        trace = json.load(source)
    path = folder / "rank0.json.gz"
    text_bytes = events = 0
    with gzip.open(path, "wt", compresslevel=6) as packed:
        for text in repeated(trace, megabytes * 1_000_000, layout):
            packed.write(text)
            text_bytes += len(text)
            events += 1
    return path, text_bytes, events - 2


def measure(tasks: dict[str, tuple[str, str]], path: Path, times: int) -> dict[str, dict[str, float]]:
    """The median of every stage of every task over ``times`` fresh processes.

    The tasks take turns, so that a busy spell of the machine hits all of them.
    """
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in tasks}
    for _ in range(times):
        for name, (python, script) in tasks.items():
            command = [python, "-c", script, str(path), str(REPOSITORY)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{python} failed:\n{done.stderr[-2000:]}")
            runs[name].append(json.loads(done.stdout.strip().rsplit("\n", 1)[-1]))
    return {
        name: {stage: statistics.median(run[stage] for run in found) for stage in found[0]}
        for name, found in runs.items()
    }


def table(ours: dict[str, float], theirs: dict[str, float] | None) -> Iterator[str]:
    """The Markdown table."""
    yield "| | traceinsight | HTA | ratio |"
    yield "|---|---|---|---|"
    for stage in dict.fromkeys([*ours, *(theirs or {})]):
        digits, unit = ("0", "MB peak") if stage.endswith(" MB") else ("2", "s")
        mine, other = ours.get(stage), (theirs or {}).get(stage)
        cells = [f"{value:.{digits}f} {unit}" if value is not None else "–" for value in (mine, other)]
        ratio = f"{mine / other:.3f}" if mine is not None and other else "–"
        yield f"| {stage.removesuffix(' MB')} | {cells[0]} | {cells[1]} | {ratio} |"


def machine() -> str:
    """Processor, cores and Python, in a line."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        found = re.search(r"model name\s*: (.*)", cpuinfo.read_text())
        model = found[1] if found else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def commit() -> str:
    """The commit that is measured."""
    command = ["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def main() -> None:
    """Writes the trace, measures, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hta-python", help="interpreter that has HTA; without it only ours is measured")
    parser.add_argument("--megabytes", type=int, default=200, help="size of the trace's text")
    parser.add_argument("--layout", choices=LAYOUT, default="pretty", help="how the JSON is written")
    parser.add_argument("--times", type=int, default=3, help="processes of each to take the median of")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, text_bytes, events = write_trace(Path(folder), options.megabytes, options.layout)
        tasks = {"ours": (sys.executable, MEASURE_OURS)}
        if options.hta_python:
            tasks["hta"] = (options.hta_python, MEASURE_HTA)
        found = measure(tasks, path, options.times)
        ours, theirs = found["ours"], found.get("hta")
        packed = path.stat().st_size
    print(
        f"{text_bytes / 1e6:.0f} MB of {options.layout} JSON ({packed / 1e6:.1f} MB gzip), {events:,} events;"
    )
    print(f"{machine()}; commit {commit()}; {datetime.now(UTC):%Y-%m-%d}.\n")
    print("\n".join(table(ours, theirs)))
    share = ours["load MB"] * 1.048576e6 / text_bytes
    print(f"\nPeak memory while loading: {share:.2f} x the size of the JSON text.")


if __name__ == "__main__":
    main()
