"""Communication kernels of every library, and those that only sound like it."""

import pytest

from traceinsight.base.collective_names import (
    UNKNOWN,
    bus_factor,
    element_bytes,
    is_communication_kernel,
    operation_of,
)

KERNELS = {  # kernel name -> operation that the name alone tells
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)": "send_recv",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)": "all_reduce",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)": "all_reduce",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "all_gather",
    "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "reduce_scatter",
    "ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "reduce",
    "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "broadcast",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)": "send_recv",
    "ncclSymkDevKernel_AllGather_LLMC(ncclSymkDevWorkArgs4K)": "all_gather",
    "ncclSymk_AllReduce_RSxLD_AGxST_Sum_bf16": "all_reduce",
    "ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)": UNKNOWN,
    "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)": UNKNOWN,
    "mscclKernel_Sum_float_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)": UNKNOWN,
    "void mscclpp::allreduceAllPairs<float>(float*, float*)": "all_reduce",
    "void one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16**, int)": "all_reduce",
    "void two_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16**, int)": "all_reduce",
    "multimem_all_reduce_kernel": "all_reduce",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)": "all_reduce",
    "void vllm::cross_device_reduce_2stage<half, 8>(vllm::RankData*)": "all_reduce",
}

COMPUTE = [
    "void at::native::batch_norm_collect_statistics_channels_last_kernel<at::native::Var, float>(float*)",
    "void at::native::batch_norm_backward_reduce_channels_last_kernel<4, float>(SyncBatchNorm)",
    "SyncBatchNormBackward",
    "hipblasLt_gemm_all_reduce_free",
    "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_hipblaslt",
    "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<int*, int*>>(int*)",
    "void cub::CUB_200200_800_NS::DispatchReduceByKey<long>()",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(float)",
    "void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)",
    "ampere_sgemm_128x64_nn",
]


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_moves_data_between_gpus(name: str) -> None:
    assert is_communication_kernel(name)


@pytest.mark.parametrize("name", COMPUTE)
def test_a_kernel_that_only_sounds_like_it(name: str) -> None:
    assert not is_communication_kernel(name)


@pytest.mark.parametrize(("name", "operation"), KERNELS.items())
def test_the_operation_a_kernel_name_tells(name: str, operation: str) -> None:
    assert operation_of(name) == operation


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("all_to_allv", "all_to_all"),
        ("nccl:all_to_all", "all_to_all"),
        ("c10d::alltoall_base_", "all_to_all"),
        ("gloo:all_reduce", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("nccl:_all_gather_base", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("nccl:reduce", "reduce"),
        ("nccl:send 0->1", "send_recv"),
        ("nccl:recv 0<-1", "send_recv"),
        ("c10d::barrier", "barrier"),
        ("gloo:broadcast", "broadcast"),
        ("gloo:gather", "gather"),
        ("gloo:scatter", "scatter"),
        ("aten::mm", UNKNOWN),
    ],
)
def test_one_name_per_operation(text: str, operation: str) -> None:
    assert operation_of(text) == operation


@pytest.mark.parametrize(
    ("operation", "ranks", "factor"),
    [  # nccl-tests, PERFORMANCE.md: all-reduce 2(n-1)/n; all-gather, reduce-scatter, all-to-all (n-1)/n
        ("all_reduce", 2, 1.0),
        ("all_reduce", 8, 1.75),
        ("all_gather", 4, 0.75),
        ("reduce_scatter", 4, 0.75),
        ("all_to_all", 8, 0.875),
        ("broadcast", 8, 1.0),
        ("reduce", 8, 1.0),
        ("send_recv", 2, None),
        (UNKNOWN, 8, None),
        ("all_reduce", 1, None),
    ],
)
def test_bus_factors_are_those_of_nccl_tests(operation: str, ranks: int, factor: float | None) -> None:
    assert bus_factor(operation, ranks) == factor


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("Double", 8), ("Long", 8), ("long int", 8), ("Float", 4), ("Int", 4), ("float", 4),
        ("Half", 2), ("BFloat16", 2), ("c10::BFloat16", 2), ("c10::Half", 2),
        ("Byte", 1), ("Char", 1), ("Bool", 1), ("unsigned char", 1), ("signed char", 1),
        ("Float8_e4m3fn", 1), ("Float8_e5m2", 1),
        ("QInt77", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_bytes_per_element_or_not_known(dtype: str | None, size: int | None) -> None:
    assert element_bytes(dtype) == size
