"""Real kernel names and the family each belongs to."""

import pytest

from traceinsight.base.kernel_families import family_of

FAMILIES = {
    "communication": ["ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"],
    "embedding": [
        "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel<float, float>()",
        "void fbgemm_gpu::split_embedding_codegen_forward_unweighted_kernel<float>()",
        "void fbgemm_gpu::permute_2D_data_kernel<long, int>()",
        "void fbgemm_gpu::bounds_check_indices_kernel<long>()",
        "void at::native::(anonymous namespace)::EmbeddingBag_updateOutputKernel_sum_mean<float, long>()",
    ],
    "quantize": [
        "void fbgemm_gpu::(anonymous namespace)::_compute_FP8_quantize_cuda_kernel<float>(float const*)",
        "FloatToHFP8Quantized",
    ],
    "attention": [
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128>>()",
        "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention)",
        "void scaled_upper_triang_masked_softmax_warp_forward<__half, __half, float, 11>()",
    ],
    "gemm": [
        "ampere_sgemm_128x64_nn", "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm>()",
        "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTN", "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_hipblaslt",
        "void splitKreduce_kernel<32, 16, int, float>()",
        "void cudnn::cnn::wgrad2d_grouped_direct_kernel<float, float, int, float>()",
        "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>()",
        "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc",
    ],
    "optimizer": [
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdam>()"
    ],
    "reduction": [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>()",
        "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<int*>>()",
        "void at::native::batch_norm_collect_statistics_kernel<float>()",
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>()",
        "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>()",
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, true, false>()",
        "void (anonymous namespace)::softmax_warp_backward<float, float, float, 10, false, false>()",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>()",
    ],
    "elementwise": [
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>()",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>()",
        "triton_poi_fused_add_relu_3",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>()",
    ],
    "other": ["my_company_secret_kernel"],
}  # fmt: skip


@pytest.mark.parametrize(("family", "name"), [(f, name) for f, names in FAMILIES.items() for name in names])
def test_the_family_of_a_kernel(family: str, name: str) -> None:
    assert family_of(name) == family


@pytest.mark.parametrize(
    "name",
    [
        "void fbgemm_gpu::(anonymous namespace)::_get_FP8_qparam_cuda_kernel<float>(float const*, int)",
        "void fbgemm_gpu::(anonymous namespace)::_FP8rowwise_to_float_cuda_kernel<float>(char*)",
    ],
)
def test_fbgemms_codecs_are_quantization(name: str) -> None:
    assert family_of(name) == "quantize"
