"""What is installed on this machine, looked up without changing or starting anything."""

from __future__ import annotations

import ctypes
import dataclasses
import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DISTRIBUTIONS = (
    "torch",
    "torchrec",
    "fbgemm-gpu",
    "fbgemm-gpu-cpu",
    "triton",
    "nvidia-nccl-cu11",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
)
PLUGIN_FOLDERS = ("/opt/amazon/ofi-nccl/lib", "/opt/amazon/ofi-nccl/lib64", "/opt/aws-ofi-nccl/lib")
PLUGIN_FILES = ("libnccl-net-ofi.so", "libnccl-net-aws-ofi.so", "libnccl-net.so")
_PLUGIN_VERSION = re.compile(rb"aws-ofi-nccl (\d+\.\d+\.\d+)")


@dataclass(frozen=True)
class Facts:
    """Versions as their owners write them; None where a thing is absent or does not tell."""

    python: str
    installed: Mapping[str, str] = field(default_factory=dict)
    """Distribution -> version, of those that are installed."""
    torch_requires: tuple[str, ...] = ()
    """What the installed torch demands in its metadata."""
    import_errors: Mapping[str, str] = field(default_factory=dict)
    """Module -> why it cannot be imported."""
    cuda: str | None = None
    """Of the torch build; None for a CPU build."""
    gpus: int | None = 0
    """GPUs that torch can use; None: nobody looked."""
    driver: str | None = None
    """Version of the loaded NVIDIA kernel module."""
    nccl: str | None = None
    """The NCCL that torch loads at run time."""
    efa_devices: int = 0
    plugin_path: str | None = None
    plugin: str | None = None
    libfabric: str | None = None


MODULES = ("torch", "fbgemm_gpu", "torchrec")


def metadata() -> Facts:
    """Look at what is installed without importing any of it: milliseconds, and nothing can crash."""
    installed = {name: version for name in DISTRIBUTIONS if (version := _version(name))}
    absent = {
        module: f"ModuleNotFoundError: No module named '{module}'"
        for module in MODULES
        if importlib.util.find_spec(module) is None
    }
    plugin_path = _find_plugin()
    return Facts(
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        installed=installed,
        torch_requires=tuple(importlib.metadata.requires("torch") or ()) if "torch" in installed else (),
        import_errors=absent,
        cuda=_built_for_cuda(),
        gpus=None,
        driver=_driver(),
        efa_devices=len(list(Path("/sys/class/infiniband").glob("efa*"))),
        plugin_path=None if plugin_path is None else str(plugin_path),
        plugin=None if plugin_path is None else plugin_version(plugin_path.read_bytes()),
        libfabric=_libfabric(),
    )


def collect() -> Facts:
    """Look at this machine and this Python; imports the stack."""
    errors: dict[str, str] = {}
    for module in MODULES:
        try:
            importlib.import_module(module)
        except Exception as error:  # a broken build raises anything, and that is what is asked here
            errors[module] = f"{type(error).__name__}: {error}".splitlines()[0]
    seen = metadata()
    if "torch" in errors:
        return dataclasses.replace(seen, import_errors=errors)
    cuda, gpus, nccl = _torch_facts()
    return dataclasses.replace(seen, import_errors=errors, cuda=cuda, gpus=gpus, nccl=nccl)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _built_for_cuda() -> str | None:
    """Return what torch's own version file says; a CUDA build of PyPI does not show it in its version."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return None
    try:
        text = Path(found.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    stated = re.search(r"^cuda\b[^=]*=\s*'([\d.]+)'", text, re.MULTILINE)
    return stated.group(1) if stated else None


def _torch_facts() -> tuple[str | None, int, str | None]:
    import torch  # noqa: PLC0415  it may be missing, which is a finding and not a failure

    if not torch.cuda.is_available():
        return torch.version.cuda, 0, None
    nccl = torch.cuda.nccl.version() if torch.distributed.is_nccl_available() else None
    return torch.version.cuda, torch.cuda.device_count(), nccl and ".".join(map(str, nccl))


def _driver() -> str | None:
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"Kernel Module\D*(\d+(?:\.\d+)+)", text)
    return found.group(1) if found else None


def _find_plugin() -> Path | None:
    named = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for folder in [*named, *PLUGIN_FOLDERS]:
        for name in PLUGIN_FILES:
            if (path := Path(folder, name)).is_file():
                return path
    return None


def plugin_version(library: bytes) -> str | None:
    """Return the version that aws-ofi-nccl says at start-up: it is a text inside the library."""
    found = _PLUGIN_VERSION.search(library)
    return found.group(1).decode() if found else None


def _libfabric() -> str | None:
    for name in (
        "libfabric.so.1",
        "/opt/amazon/efa/lib64/libfabric.so.1",
        "/opt/amazon/efa/lib/libfabric.so.1",
    ):
        try:
            version = ctypes.CDLL(name).fi_version
        except (OSError, AttributeError):
            continue
        version.restype = ctypes.c_uint32  # major in the upper, minor in the lower 16 bits
        number = version()
        return f"{number >> 16}.{number & 0xFFFF}"
    return None
