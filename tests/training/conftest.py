"""These tests need torchrec.

Without it they are left out, except where TRACEINSIGHT_REQUIRE_TORCH says it must be there.
"""

import importlib.util
import os

if importlib.util.find_spec("torchrec") is None:
    if os.environ.get("TRACEINSIGHT_REQUIRE_TORCH"):
        raise RuntimeError("torchrec is not installed: run `make test`, which installs it")
    collect_ignore_glob = ["test_*.py"]
