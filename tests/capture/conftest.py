"""These tests need torch.

Without it they are left out, except where TRACEINSIGHT_REQUIRE_TORCH says it must be there.
"""

import importlib.util
import os

if importlib.util.find_spec("torch") is None:
    if os.environ.get("TRACEINSIGHT_REQUIRE_TORCH"):
        raise RuntimeError("torch is not installed: run `make test`, which installs it")
    collect_ignore_glob = ["test_*.py"]
