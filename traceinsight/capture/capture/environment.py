"""What a manifest may say about the environment: versions, and settings by an explicit list of names.

The list names variables one by one. A pattern such as ``NCCL_*`` would publish whatever somebody puts behind
that prefix tomorrow, and a manifest is made to be shared.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping

ALLOWED_NAMES = (
    # NCCL: what decides the path and the protocol of a collective.
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_CROSS_NIC",
    "NCCL_CUMEM_ENABLE",
    "NCCL_IB_DISABLE",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_NET",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NET_PLUGIN",
    "NCCL_NSOCKS_PERTHREAD",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_PROTO",
    "NCCL_SHM_DISABLE",
    "NCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_NTHREADS",
    "NCCL_TUNER_PLUGIN",
    # libfabric and EFA.
    "FI_EFA_FORK_SAFE",
    "FI_EFA_USE_DEVICE_RDMA",
    "FI_EFA_USE_HUGE_PAGE",
    "FI_PROVIDER",
    "RDMAV_FORK_SAFE",
    # PyTorch and its process groups.
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_ENABLE_TIMING",
    "TORCH_NCCL_HIGH_PRIORITY",
    "TORCH_DISTRIBUTED_DEBUG",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    # Threads and launch order, which move the host's share of a step.
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
)

PACKAGES = (
    "torch",
    "torchrec",
    "fbgemm-gpu",
    "fbgemm-gpu-cpu",
    "triton",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
    "traceinsight-recsys",
)


def allowed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ``environment`` that are on the list, sorted by name."""
    return {name: environment[name] for name in sorted(ALLOWED_NAMES) if name in environment}


def versions() -> dict[str, str]:
    """Return the version of Python and of each installed package of ``PACKAGES``."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
