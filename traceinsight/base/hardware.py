"""Datasheet figures of GPUs and networks: peak rates, to be multiplied by an efficiency before use.

GB/s are decimal and per direction; TFLOP/s are dense (no structured sparsity). A figure a vendor does not
publish (launch latency, latency per message) is a typical measured one, and its comment says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU.

    Attributes:
        name: As ``deviceProperties`` of a trace names it.
        hbm_gbps: Memory bandwidth, GB/s.
        memory_gb: Memory, GB.
        link_gbps: NVLink or xGMI of one GPU to its node, GB/s per direction.
        bf16_tflops: Matrix units at BF16 (FP16 where there is no BF16), TFLOP/s.
        tf32_tflops: Matrix units at TF32 (FP32 where there is no TF32), TFLOP/s.
        fp32_tflops: Vector units at FP32, TFLOP/s.
        launch_latency_us: From the launch call to the start of the kernel on an idle stream.
        sm_count: Multiprocessors (compute units).

    """

    name: str
    hbm_gbps: float
    memory_gb: float
    link_gbps: float
    bf16_tflops: float
    tf32_tflops: float
    fp32_tflops: float
    launch_latency_us: float
    sm_count: int


@dataclass(frozen=True, slots=True)
class Network:
    """The network of one node.

    Attributes:
        node_gbps: All adapters of a node together, GB/s per direction.
        efficiency: Share of the line rate that large NCCL exchanges reach (0..1).
        latency_us: Of one message to one peer, as NCCL sees it.

    """

    node_gbps: float
    efficiency: float
    latency_us: float


# Sources: the vendors' datasheets of the SXM/OAM parts. Launch latencies: 4-6 us are usual with CUDA on
# recent hosts, about 8 us with HIP (both vary more with the host than with the GPU).
GPUS: Mapping[str, Gpu] = MappingProxyType(
    {
        # NVIDIA V100 datasheet (SXM2 32 GB): 900 GB/s, NVLink2 300 GB/s in both directions, 125 TFLOP/s FP16.
        "V100": Gpu("Tesla V100-SXM2-32GB", 900, 34, 150, 125, 15.7, 15.7, 6.0, 80),
        # NVIDIA A100 datasheet (SXM4 80 GB): 2,039 GB/s, NVLink3 600 GB/s in both directions.
        "A100": Gpu("NVIDIA A100-SXM4-80GB", 2039, 85, 300, 312, 156, 19.5, 5.0, 108),
        # NVIDIA H100 datasheet (SXM5): 3.35 TB/s, NVLink4 900 GB/s both directions; half the sparse TFLOP/s.
        "H100": Gpu("NVIDIA H100 80GB HBM3", 3350, 85, 450, 989, 494, 67, 4.5, 132),
        # NVIDIA H200 datasheet (SXM5): 4.8 TB/s; compute as H100.
        "H200": Gpu("NVIDIA H200", 4800, 151, 450, 989, 494, 67, 4.5, 132),
        # NVIDIA HGX B200 datasheet: 8 TB/s, NVLink5 1.8 TB/s in both directions.
        "B200": Gpu("NVIDIA B200", 8000, 192, 900, 2250, 1100, 75, 4.5, 148),
        # AMD Instinct MI300X datasheet: 5.3 TB/s, seven Infinity Fabric links of 128 GB/s in both directions.
        "MI300X": Gpu("AMD Instinct MI300X", 5300, 206, 448, 1307, 654, 163, 8.0, 304),
    }
)

# Line rates: AWS instance documentation (EFA: "network bandwidth" of the instance type), NVIDIA ConnectX
# datasheets (InfiniBand, one adapter per GPU). Efficiency and latency are typical of nccl-tests on such
# networks: sockets reach a fraction of the line rate, since a few CPU threads copy all bytes.
NETWORKS: Mapping[str, Network] = MappingProxyType(
    {
        "tcp_25g": Network(3.125, 0.40, 50.0),
        "tcp_100g": Network(12.5, 0.25, 50.0),
        "efa_p3dn": Network(12.5, 0.60, 30.0),  # p3dn.24xlarge, 1 x 100 Gbit/s
        "efa_p4d": Network(50.0, 0.60, 25.0),  # p4d.24xlarge, 4 x 100 Gbit/s
        "efa_p5": Network(400.0, 0.70, 20.0),  # p5.48xlarge, 32 x 100 Gbit/s
        "efa_p5en": Network(400.0, 0.75, 17.0),  # p5en.48xlarge, 16 x 200 Gbit/s
        "efa_p6_b200": Network(400.0, 0.75, 15.0),  # p6-b200.48xlarge, 8 x 400 Gbit/s
        "ib_hdr": Network(200.0, 0.85, 5.0),  # 8 x 200 Gbit/s
        "ib_ndr": Network(400.0, 0.85, 4.0),  # 8 x 400 Gbit/s
        "ib_xdr": Network(800.0, 0.85, 4.0),  # 8 x 800 Gbit/s
    }
)

# What the large clouds sell with the GPU: AWS instance types as above; MI300X: Azure ND MI300X v5.
OS_BYPASS_OF_GPU: Mapping[str, str] = MappingProxyType(
    {
        "V100": "efa_p3dn",
        "A100": "efa_p4d",
        "H100": "efa_p5",
        "H200": "efa_p5en",
        "B200": "efa_p6_b200",
        "MI300X": "ib_ndr",
    }
)
"""GPU -> the network without sockets that usually comes with it, a name of ``NETWORKS``."""


def gpu_key(device: str | None) -> str | None:
    """The name in ``GPUS`` of a device as traces name it, or None for another one."""
    return next((key for key in GPUS if key in (device or "").upper()), None)


def is_sockets(network: str) -> bool:
    """Whether a network of ``NETWORKS`` goes through the kernel's TCP stack."""
    return network.startswith("tcp")
