#!/usr/bin/env bash
# One node of a run, whatever started it: torchrun with all ranks of this node, then its traces to where they belong.
#
#   RECIPE=frm_cpu_2rank NPROC_PER_NODE=2 RUNS=runs training/clusters/run_node.sh --set loop.steps=30
#
# RECIPE          a recipe of training/recipes.py
# RUNS            where traces go: a folder that all nodes share, or a URL that fsspec can write (s3://, gs://, ...)
# CHECKPOINTS     folder that all nodes share, for checkpoints and resuming; empty: none
# NNODES, NODE_RANK, MASTER_ADDR, MASTER_PORT, NPROC_PER_NODE
#                 default: what Kubeflow's operator sets (PET_*), else one node
# PYTHON          default: python
#
# SIGTERM and Ctrl-C are passed on to the ranks, which save a checkpoint, and waited for. They have 110 s
# (TORCH_ELASTIC_SHUTDOWN_TIMEOUT; training/launch.py), ten less than the clusters' files here ask for.
set -euo pipefail

: "${RECIPE:?set RECIPE to a recipe of training/recipes.py}"
: "${RUNS:?set RUNS to a shared folder, or to a URL such as s3://bucket/runs}"
PYTHON=${PYTHON:-python}
NNODES=${NNODES:-${PET_NNODES:-1}}
NODE_RANK=${NODE_RANK:-${PET_NODE_RANK:-0}}
NPROC_PER_NODE=${NPROC_PER_NODE:-${PET_NPROC_PER_NODE:-auto}}
MASTER_ADDR=${MASTER_ADDR:-127.0.0.1}
MASTER_PORT=${MASTER_PORT:-29500}

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

case $RUNS in
  *://*) traces=$(mktemp -d) ;;
  *) traces=$RUNS ;;
esac
arguments=(--recipe "$RECIPE" --traces "$traces")
if [ -n "${CHECKPOINTS:-}" ]; then
  arguments+=(--set "checkpoint.folder=$CHECKPOINTS")
fi

# Only torchrun may say which rank a process is: an operator's RANK means this pod.
unset RANK WORLD_SIZE LOCAL_RANK
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} KINETO_LOG_LEVEL=${KINETO_LOG_LEVEL:-99}
set -m  # a process group of its own, or Ctrl-C would reach it twice: from the terminal and from here
"$PYTHON" -m training.node --nnodes "$NNODES" --node-rank "$NODE_RANK" \
  --nproc-per-node "$NPROC_PER_NODE" --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" \
  --max-restarts 0 -m training "${arguments[@]}" "$@" &
torchrun=$!
for signal in TERM INT; do
  # shellcheck disable=SC2064  # the signal of now
  trap "kill -$signal $torchrun 2>/dev/null || true" "$signal"
done
status=0
wait "$torchrun" || status=$?
# A trapped signal ends `wait` before the process it waits for.
while kill -0 "$torchrun" 2>/dev/null; do
  status=0
  wait "$torchrun" || status=$?
done

if [ "$traces" != "$RUNS" ]; then
  "$PYTHON" -m training.clusters.collect "$traces" "$RUNS" || status=$((status == 0 ? 1 : status))
fi
exit "$status"
