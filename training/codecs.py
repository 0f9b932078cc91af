"""Number formats of embeddings and their gradients on the wire."""

from __future__ import annotations

from torchrec.distributed.fbgemm_qcomm_codec import CommType, QCommsConfig, get_qcomm_codecs_registry

from training.config import Config


def codec_registry(config: Config):  # placeholder: the CPU's FP8 codec and the counter come next
    """Return TorchRec's registry of codecs, None for FP32."""
    if not config.qcomms.on:
        return None
    return get_qcomm_codecs_registry(
        QCommsConfig(CommType(config.qcomms.forward), CommType(config.qcomms.backward))
    )
