# shellcheck shell=bash
# What the sbatch files have in common: one run_node.sh per node. Sourced with the job's arguments.
: "${RUNS:?set RUNS to a folder that all nodes share, or to a URL such as s3://bucket/runs}"

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
# A port of the job's own: two jobs may share a node where --exclusive is taken out.
MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
export MASTER_ADDR MASTER_PORT
export NNODES=$SLURM_NNODES
export NPROC_PER_NODE=${SLURM_GPUS_ON_NODE:-auto}

cd "$SLURM_SUBMIT_DIR" || exit 1
# shellcheck disable=SC2016  # SLURM_NODEID differs from node to node: it is srun's shell that must expand it
srun --kill-on-bad-exit=1 bash -c 'NODE_RANK=$SLURM_NODEID exec training/clusters/run_node.sh "$@"' run_node "$@"
