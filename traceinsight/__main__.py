"""``python -m traceinsight``: the same as the command ``traceinsight``."""

import sys

from traceinsight.cli import main

sys.exit(main())
