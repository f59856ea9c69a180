#!/bin/bash
# The kernels of a manifest on a cluster, one part of them for each task of an array:
#
#   sbatch --array=0-7 slurm.sh kernels.yaml
#   rollerc batch --merge kernels.*-of-8.jsonl --json kernels.jsonl     # when all have ended
#
# A task that is preempted or cut off goes on where it was when it runs again.
#SBATCH --job-name=kernels
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --time=00:30:00
#SBATCH --requeue
set -eu

# `exec`: what the scheduler signals is rollerc, which then leaves nothing half-written.
exec rollerc batch "$1" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --jobs "$SLURM_CPUS_PER_TASK" \
    --keep-going --cache "${ROLLERC_CACHE:-$HOME/.cache/rollerc}"
