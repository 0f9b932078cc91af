"""Who arrives late at the collectives, by how much, why, and what step time mending it would free."""

from traceinsight.analyses.stragglers.judge import StragglerJudgement, find_stragglers
from traceinsight.analyses.stragglers.overload import TableFacts

__all__ = ["StragglerJudgement", "TableFacts", "find_stragglers"]
