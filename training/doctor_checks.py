"""Whether versions fit together: pure functions of the facts and of the table of known-good sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from training.doctor_facts import MODULES, Facts

Table = dict[str, Any]
"""``known_good.toml`` as parsed: lists ``set`` and ``plugin``, newest first."""
_DISTRIBUTIONS = {
    "torch": ("torch",),
    "fbgemm_gpu": ("fbgemm-gpu", "fbgemm-gpu-cpu"),
    "torchrec": ("torchrec",),
}
_MODULE_OF = {"torch": "torch", "torchrec": "torchrec", "fbgemm": "fbgemm_gpu"}
PROBLEM, WARNING, UNKNOWN, OK = "problem", "warning", "unknown", "ok"


@dataclass(frozen=True)
class Finding:
    """One judgment. ``change`` says what to do; empty where nothing is to be done."""

    level: str
    what: str
    change: str = ""


def check(facts: Facts, table: Table) -> list[Finding]:
    """Return all findings, problems first."""
    order = [PROBLEM, WARNING, UNKNOWN, OK]
    fits = [finding for part in _CHECKS for finding in part(facts, table)]
    found = [*_imports(facts, any(finding.level == PROBLEM for finding in fits)), *fits]
    return sorted(found, key=lambda finding: order.index(finding.level))


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (2, 13, 0) of 2.13.0+cpu."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found.group().split("."))) if found else ()


def _minor(version: str) -> str:
    return ".".join(map(str, numbers(version)[:2]))


def _imports(facts: Facts, explained: bool) -> Iterator[Finding]:
    """Say what cannot be imported; ``explained``: another check found a problem, which comes first."""
    for module, error in facts.import_errors.items():
        yield Finding(
            PROBLEM, f"{module} cannot be imported ({error})", _import_cure(facts, module, error, explained)
        )


def _import_cure(facts: Facts, module: str, error: str, explained: bool) -> str:
    absent = re.search(r"No module named '([\w.]+)'", error)
    if absent and absent.group(1).partition(".")[0] not in MODULES:
        name = absent.group(1).partition(".")[0]
        return f"install what {name} belongs to; training/requirements-cpu*.txt name what {module} needs"
    if not facts.installed.keys() & set(_DISTRIBUTIONS[module]):
        return "install it as CONTRIBUTING.md says"
    if explained:
        return "mend the problems named below first"
    if module != "torch" and "torch" in facts.import_errors:
        return "mend torch first: this one needs it"
    # FBGEMM is what is built for one torch; an error in TorchRec may well be of its operators.
    anew = ("torch",) if module == "torch" else ("fbgemm-gpu", "fbgemm-gpu-cpu", "torchrec")
    pins = " ".join(f"{name}=={facts.installed[name]}" for name in anew if name in facts.installed)
    return (
        "the version numbers fit, so files are damaged or were built for another torch, CUDA or Python: "
        f"pip install --force-reinstall --no-deps {pins}, from the index that torch came from"
    )


def _fbgemm_builds(facts: Facts, _table: Table) -> Iterator[Finding]:
    both = {"fbgemm-gpu", "fbgemm-gpu-cpu"} & facts.installed.keys()
    if len(both) == 2:
        yield Finding(
            PROBLEM,
            "fbgemm-gpu and fbgemm-gpu-cpu are both installed; they write the same files",
            "uninstall both, then install the one that fits torch (CPU or CUDA)",
        )
    elif "fbgemm-gpu-cpu" in both and facts.cuda:
        yield Finding(
            PROBLEM,
            f"torch is a CUDA {facts.cuda} build, FBGEMM a CPU build: its operators refuse GPU tensors",
            "replace fbgemm-gpu-cpu by fbgemm-gpu of the same version",
        )
    elif "fbgemm-gpu" in both and "torch" in facts.installed and not facts.cuda:
        yield Finding(
            PROBLEM,
            "torch is a CPU build, FBGEMM a CUDA build: it looks for CUDA libraries that are not there",
            "replace fbgemm-gpu by fbgemm-gpu-cpu, or install a CUDA build of torch",
        )


def _the_set(facts: Facts, table: Table) -> Iterator[Finding]:
    installed = facts.installed
    versions = {
        "torch": installed.get("torch"),
        "torchrec": installed.get("torchrec"),
        "fbgemm": installed.get("fbgemm-gpu") or installed.get("fbgemm-gpu-cpu"),
    }
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        # What cannot be imported has been named already.
        unnamed = [name for name in missing if _MODULE_OF[name] not in facts.import_errors]
        if unnamed:
            what = f"not installed: {', '.join(unnamed)}"
            yield Finding(PROBLEM, what, "install it as CONTRIBUTING.md says")
        return
    minors = {name: _minor(version) for name, version in versions.items() if version}
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    known = next((row for row in table["set"] if row["torch"] == minors["torch"]), None)
    if known is None:
        newest = table["set"][0]
        yield from _unknown_torch(minors, text, newest)
    elif any(known[name] != minors[name] for name in minors):
        wanted = ", ".join(f"{name} {known[name]}.*" for name in ("torchrec", "fbgemm"))
        yield Finding(
            PROBLEM, f"{text} do not belong together", f"for torch {known['torch']} install {wanted}"
        )
    else:
        yield Finding(OK, f"{text} belong together ({known['source']})")
        yield from _surroundings(facts, known)


def _unknown_torch(minors: dict[str, str], text: str, newest: dict[str, Any]) -> Iterator[Finding]:
    known = f"e.g. torch {newest['torch']}, torchrec {newest['torchrec']}, fbgemm {newest['fbgemm']}"
    if minors["torchrec"] != minors["fbgemm"]:
        yield Finding(
            PROBLEM,
            f"{text}: TorchRec and FBGEMM are tested together under matching version numbers only",
            f"install the same minor version of both; {known}",
        )
    else:
        yield Finding(UNKNOWN, f"{text} are in no known-good set", f"a known one is {known}")


def _surroundings(facts: Facts, known: dict[str, Any]) -> Iterator[Finding]:
    if facts.python not in known["python"]:
        yield Finding(
            WARNING,
            f"Python {facts.python} is not among those of this set",
            f"use {_one_of(known['python'])}",
        )
    if facts.cuda and known["cuda"] and _minor(facts.cuda) not in known["cuda"]:
        yield Finding(
            PROBLEM,
            f"torch is built for CUDA {facts.cuda}, FBGEMM {known['fbgemm']} is not",
            f"install torch for CUDA {_one_of(known['cuda'])}",
        )
    elif facts.cuda and not known["cuda"]:
        yield Finding(UNKNOWN, f"this set is known on CPU; nothing is known about CUDA {facts.cuda}")


def _one_of(choices: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]]))


def _gpu(facts: Facts, _table: Table) -> Iterator[Finding]:
    if facts.driver is None:
        yield Finding(UNKNOWN, "no NVIDIA driver is loaded: CUDA, NCCL and EFA were not checked")
    elif not facts.cuda and "torch" in facts.installed:
        yield Finding(
            WARNING,
            f"there is an NVIDIA driver ({facts.driver}), but torch is a CPU build",
            "install a CUDA build of torch, or go on with device = cpu",
        )
    elif facts.gpus == 0 and "torch" in facts.installed and "torch" not in facts.import_errors:
        yield Finding(
            PROBLEM,
            f"torch for CUDA {facts.cuda} finds no GPU with driver {facts.driver}",
            "look at CUDA_VISIBLE_DEVICES and nvidia-smi; a driver too old for this CUDA shows the same",
        )


def _pins(facts: Facts, _table: Table) -> Iterator[Finding]:
    """Compare Triton and NCCL with what this very build of torch was made for."""
    for name in ("triton", "nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13"):
        wanted, present = _pinned(facts, name), facts.installed.get(name)
        if wanted and present and numbers(present) != numbers(wanted):
            yield Finding(
                PROBLEM,
                f"torch wants {name} {wanted}, {present} is installed",
                f"pip install {name}=={wanted}",
            )
        elif wanted and not present:
            yield Finding(
                WARNING, f"torch wants {name} {wanted}, none is installed", f"pip install {name}=={wanted}"
            )
        elif wanted:
            yield Finding(OK, f"{name} {present} is what torch wants")
        elif name == "triton" and present and "torch" in facts.installed and facts.cuda:
            yield Finding(UNKNOWN, f"triton {present} is installed; this torch does not say which it wants")


def _pinned(facts: Facts, name: str) -> str | None:
    for requirement in facts.torch_requires:
        found = re.match(rf"{re.escape(name)}\s*\(?==\s*([\w.+]+)", requirement)
        if found and "extra ==" not in requirement:
            return found.group(1)
    return None


def _loaded_nccl(facts: Facts, _table: Table) -> Iterator[Finding]:
    name = next((name for name in facts.installed if name.startswith("nvidia-nccl")), None)
    if facts.nccl and name and numbers(facts.nccl)[:3] != numbers(facts.installed[name])[:3]:
        yield Finding(
            PROBLEM,
            f"torch loads NCCL {facts.nccl}, but {name} {facts.installed[name]} is installed",
            "another libnccl comes first: look at LD_LIBRARY_PATH and LD_PRELOAD",
        )


def _efa(facts: Facts, table: Table) -> Iterator[Finding]:
    if facts.plugin_path is None:
        if facts.efa_devices:
            yield Finding(
                PROBLEM,
                f"{facts.efa_devices} EFA devices, but no aws-ofi-nccl: NCCL will use TCP sockets",
                "install it (the EFA installer has it) and put its lib folder into LD_LIBRARY_PATH",
            )
        return
    if not facts.efa_devices:
        yield Finding(
            UNKNOWN, f"{facts.plugin_path} is there, but no EFA device: the plugin will not be used"
        )
    row = _plugin_row(facts, table)
    if row is None:
        yield Finding(UNKNOWN, f"aws-ofi-nccl {facts.plugin or '(version unknown)'} is not in the table")
        return
    yield from _plugin_needs(facts, row)


def _plugin_row(facts: Facts, table: Table) -> dict[str, Any] | None:
    if facts.plugin is None:
        return None
    rows = table["plugin"]
    return next((row for row in rows if numbers(row["version"]) <= numbers(facts.plugin)[:2]), None)


def _plugin_needs(facts: Facts, row: dict[str, Any]) -> Iterator[Finding]:
    fits = True
    for name, present in (("nccl", facts.nccl), ("libfabric", facts.libfabric)):
        oldest = row[name]
        if present is None:
            fits = False
            yield Finding(
                UNKNOWN, f"the version of {name} could not be found out; aws-ofi-nccl needs {oldest}"
            )
        elif numbers(present)[:2] < numbers(oldest)[:2]:
            fits = False
            yield Finding(
                PROBLEM,
                f"aws-ofi-nccl {facts.plugin} needs {name} {oldest} or newer, {present} is there",
                f"upgrade {name}, or take an older aws-ofi-nccl",
            )
    if fits:
        tested = _one_of(row["tested_nccl"])
        yield Finding(
            OK,
            f"aws-ofi-nccl {facts.plugin} with NCCL {facts.nccl} ({row['version']} was tested with {tested})",
        )


_CHECKS: tuple[Callable[[Facts, Table], Iterator[Finding]], ...] = (
    _fbgemm_builds,
    _the_set,
    _gpu,
    _pins,
    _loaded_nccl,
    _efa,
)
