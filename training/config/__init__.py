"""What a run is made of: frozen, validated configuration.

Every field is checked where it is declared, and a wrong value names the field and the values that are
allowed, because a job that starts on 64 GPUs with a misspelt option is an expensive way to learn about it.
Nothing here imports torch: a wrong value is reported at once and not after seconds of importing.
"""

from training.config.checks import ConfigError
from training.config.data import DataConfig
from training.config.fault import EVERY_RANK, FaultConfig
from training.config.listing import list_fields
from training.config.loop import CheckpointConfig, LoopConfig
from training.config.model import DenseConfig, EmulationConfig, ModelConfig
from training.config.parallel import QCommsConfig, ReplicaConfig, ShardingConfig
from training.config.run import Config
from training.config.settings import as_dict, from_toml, settable_fields, with_setting, with_settings

__all__ = [
    "EVERY_RANK",
    "CheckpointConfig",
    "Config",
    "ConfigError",
    "DataConfig",
    "DenseConfig",
    "EmulationConfig",
    "FaultConfig",
    "LoopConfig",
    "ModelConfig",
    "QCommsConfig",
    "ReplicaConfig",
    "ShardingConfig",
    "as_dict",
    "from_toml",
    "list_fields",
    "settable_fields",
    "with_setting",
    "with_settings",
]
