"""What ``streamlit run`` is given. Streamlit runs a file, so this finds its package."""

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    installed = here.name == "_dashboard"  # inside a wheel, where no generic name may stand at the top
    if not installed and str(here.parent) not in sys.path:
        sys.path.insert(0, str(here.parent))
    package = "traceinsight._dashboard" if installed else "dashboard"
    importlib.import_module(f"{package}.shell").main(sys.argv[1:])
