"""Reports: each format renders a ``Diagnosis`` to text and does nothing else."""

from traceinsight.report.formats import FORMATS, Format, format_for
from traceinsight.report.options import ReportOptions

__all__ = ["FORMATS", "Format", "ReportOptions", "format_for"]
