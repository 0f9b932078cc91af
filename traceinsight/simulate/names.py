"""Kernel and runtime names as real traces of each kind of GPU have them."""

from __future__ import annotations

from dataclasses import dataclass

_ACCESSOR = "at::GenericPackedTensorAccessor<float, 1ul, at::RestrictPtrTraits, int>"
_GEMMS = {
    "V100": "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn",
    "A100": "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
    "MI300X": "Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT256x256x64_MI16x16x1",
}


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the kernels of one GPU; ``hip`` says that runtime calls are HIP's."""

    gemm: str
    all_to_all: str
    all_reduce: str
    hip: bool
    bucketize: str = (
        "void fbgemm_gpu::_block_bucketize_sparse_features_cuda_kernel2<false, false, false, int, long>"
    )
    permute: str = "void fbgemm_gpu::permute_2D_data_kernel<false, int, long, decltype(nullptr)>"
    combine: str = (
        "void permute_pooled_embs_kernel<float>(float const*, long const*, long const*, long const*, float*)"
    )
    elementwise: str = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
        "at::detail::Array<char*, 3> >"
    )
    optimizer: str = (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel"
        "<FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4> >"
    )

    def lookup(self, dim: int) -> str:
        """The forward lookup of a table batch."""
        return (
            "void split_embedding_codegen_forward_unweighted_kernel"
            f"<float, float, float, false, long, {max(1, dim // 128)}ul, 32ul>({_ACCESSOR})"
        )

    def update(self, dim: int) -> str:
        """The fused backward and optimizer of a table batch."""
        return (
            "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_warp_per_row_1"
            f"<float, float, float, {max(1, dim // 128)}ul, 32>({_ACCESSOR})"
        )

    def codec(self, way: str, dtype: str) -> str:
        """The kernel that changes the type for the wire (``encoder``) or back (``decoder``)."""
        if dtype in {"fp16", "bf16"}:
            source, target = ("float", dtype) if way == "encoder" else (dtype, "float")
            return (
                "void at::native::vectorized_elementwise_kernel<4, fbgemm_gpu::"
                f"_{source}_to_{target}_quantized_gpu(at::Tensor const&)>"
            )
        kind = "FP8rowwise" if dtype == "fp8" else "fused8bitrowwise"
        if way == "encoder":
            stem = (
                "_compute_FP8_quantize_cuda_kernel"
                if dtype == "fp8"
                else "_float_to_fused8bitrowwise_quantize_cuda_kernel"
            )
            arguments = "float const*, int, int, unsigned char*"
            return f"void fbgemm_gpu::(anonymous namespace)::{stem}<float>({arguments})"
        return (
            f"void fbgemm_gpu::(anonymous namespace)::_{kind}_to_float_dequantize_cuda_kernel<float>"
            "(unsigned char const*, int, int, float*)"
        )

    def codec_operator(self, way: str, dtype: str) -> str:
        """The operator that launches :meth:`codec`."""
        wide = {
            "fp8": "FP8RowwiseQuantized",
            "int8": "Fused8BitRowwiseQuantized",
            "fp16": "Half",
            "bf16": "Bfloat16Quantized",
        }
        return f"FloatTo{wide[dtype]}" if way == "encoder" else f"{wide[dtype]}ToFloat"


def names_for(gpu: str) -> Names:
    """The names of a GPU of the hardware table."""
    if gpu == "MI300X":
        generic = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"
        return Names(_GEMMS[gpu], generic, generic, hip=True)
    return Names(
        gemm=_GEMMS.get(gpu, "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT"),
        all_to_all="ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
        all_reduce="ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        hip=False,
    )
