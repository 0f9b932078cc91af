"""Sorting GPU kernels (and CPU operators) into families by name."""

from __future__ import annotations

import re

from traceinsight.base.collective_names import is_communication_kernel

COMMUNICATION = "communication"
COPY = "copy"
EMBEDDING = "embedding"

# First match wins: FBGEMM's FP8 codecs are quantization though their names speak of rows; a fused optimizer
# kernel of an embedding is an embedding kernel, a quantized embedding lookup too.
_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("quantize", re.compile(r"h?fp8|FP8", re.ASCII)),
    (
        EMBEDDING,
        re.compile(
            r"split_embedding|embedding_(forward|backward|codegen)|_embedding_|embedding_bag|EmbeddingBag"
            r"|\btbe\b|TBE|lxu_cache|linearize_cache|bounds_check_indices|nobag|embedding_lookup"
            r"|(asynchronous_)?complete_cumsum|permute_(1D|2D)_|permute_pooled|block_bucketize|jagged"
            r"|segment_sum_csr|recat|group_index_select|fbgemm_gpu::(?!.*[Qq]uant)",
        ),
    ),
    (
        "quantize",
        re.compile(r"quantiz|Quantiz|float8|_to_(half|bf16|bfloat16)_kernel|Float_?[Tt]o_?(B?[Ff]loat|H)"),
    ),
    ("attention", re.compile(r"flash|fmha|attention|\bsdpa|mha_|masked_softmax|AttnFwd", re.IGNORECASE)),
    (
        "gemm",
        re.compile(
            r"gemm|gemv|cutlass|cublas|_wmma|xmma|s1688|s16816|h1688|nvjet|hipblas|Cijk_|matmul|splitK|"
            r"\baten::(mm|addmm|bmm|baddbmm|linear)\b|conv(olution|\dd|_)|implicit_convolve|winograd|miopen.*[Cc]onv|igemm|"
            r"(?<![a-z])[dw]grad",
            re.IGNORECASE,
        ),
    ),
    (
        "optimizer",
        re.compile(
            r"adam|adagrad|(?<![a-z])(sgd|lamb)(?![a-z])|shampoo|muon|multi_tensor_apply|optimizer",
            re.IGNORECASE,
        ),
    ),
    (
        "reduction",
        re.compile(
            r"reduce|norm|(?<![a-z])bn_(fw|bw)|softmax|sum_kernel|mean_|welford|scan|DeviceSelect|RadixSort|sort|cub::",
            re.IGNORECASE,
        ),
    ),
    (
        "elementwise",
        re.compile(
            r"elementwise|pointwise|vectorized|unrolled|triton_(poi|red|per)?|CatArray|copy_kernel|fill|index|"
            r"gather|scatter|dropout|relu|gelu|sigmoid|\baten::",
            re.IGNORECASE,
        ),
    ),
)
OTHER = "other"


def family_of(kernel_name: str) -> str:
    """The family of a kernel: communication, embedding, quantize, attention, gemm, optimizer, reduction,
    elementwise or other.
    """  # noqa: D205 - one sentence
    if is_communication_kernel(kernel_name):
        return COMMUNICATION
    return next((family for family, pattern in _FAMILIES if pattern.search(kernel_name)), OTHER)
