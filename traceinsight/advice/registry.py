"""All rules, explicitly. A test fails when a rule module is missing here."""

from __future__ import annotations

from traceinsight.advice.rule import Rule
from traceinsight.advice.rules.capture import poor_capture
from traceinsight.advice.rules.comm import (
    cross_node_all_to_all,
    exposed_all_to_all,
    nccl_sockets,
    slow_link,
    slow_network_path,
    small_batch,
    unpipelined_exchange,
    unquantized_exchange,
    wide_embeddings,
)
from traceinsight.advice.rules.host import host_bound, small_kernels
from traceinsight.advice.rules.input import input_bound
from traceinsight.advice.rules.ranks import imbalanced_shards, straggler
from traceinsight.advice.rules.step import uncovered_loss

RULES: tuple[Rule, ...] = (
    straggler.RULE,
    imbalanced_shards.RULE,
    exposed_all_to_all.RULE,
    slow_network_path.RULE,
    slow_link.RULE,
    nccl_sockets.RULE,
    unquantized_exchange.RULE,
    wide_embeddings.RULE,
    cross_node_all_to_all.RULE,
    small_batch.RULE,
    unpipelined_exchange.RULE,
    input_bound.RULE,
    host_bound.RULE,
    small_kernels.RULE,
    uncovered_loss.RULE,
    poor_capture.RULE,
)
