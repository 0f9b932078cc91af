"""A discrete-event model of training steps that writes traces with known truth."""

from traceinsight.simulate.load import decode_spec, load_spec
from traceinsight.simulate.presets import PRESETS
from traceinsight.simulate.run import SimulatedRun, simulate
from traceinsight.simulate.spec import Spec
from traceinsight.simulate.write import write_run

__all__ = ["PRESETS", "SimulatedRun", "Spec", "decode_spec", "load_spec", "simulate", "write_run"]
