#!/usr/bin/env bash
# A sweep in N shards on one machine, with GNU parallel where it is installed, else xargs.
# usage: gnu_parallel.sh N FOLDER sweep [options of sweep]
# Run again after a crash: finished shards are left alone, others go on where they stopped.
set -euo pipefail
flashbound=${FLASHBOUND:-flashbound}
shards=$1
folder=$2
shift 2
mkdir -p "$folder"

run_shard() {
  local shard=$1
  shift
  "$flashbound" "$@" --threads 1 --quiet --shard "$shard/$shards" \
    --output "$folder/$shard.jsonl"
}
export -f run_shard
export flashbound shards folder

if command -v parallel >/dev/null; then
  seq "$shards" | parallel --halt now,fail=1 run_shard {} "$@"
else
  # shellcheck disable=SC2016 # expanded by the inner shell
  seq "$shards" |
    xargs -P "$(nproc)" -I {} bash -euo pipefail -c 'run_shard "$@"' shard {} "$@"
fi

files=$(seq -f "$folder/%g.jsonl" -s , "$shards")
"$flashbound" merge --input "$files" --output "$folder/all.jsonl" --force
