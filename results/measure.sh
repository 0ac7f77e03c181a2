#!/usr/bin/env bash
# Measures models and makes the report: results/measure.sh DATA [RUNS]
#
# First the models that ship, then every run in RUNS, which results/train.sh has made and named
# TASK-REVISER[-dDELAY][-generator] (snips-trf, conll-pos-lt, snips-bert, snips-trf-generator). DATA
# holds the corpora. Each model has a folder here. A measurement that is there is not taken again:
# delete its file for that. TAPIR names the program.
set -euo pipefail
data=$1 runs=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
tapir=${TAPIR:-tapir}

measure() { # folder, model, task, file, command, flags
  local file=$here/$1/$4.json
  [ -e "$file" ] || "$tapir" "$5" "$2" "$3" --data "$data" -o "$file" "${@:6}" > /dev/null
}

measure_all() { # folder, model, task
  echo "$1"
  measure "$1" "$2" "$3" eval eval --reference
  measure "$1" "$2" "$3" sweep sweep
  measure "$1" "$2" "$3" analysis analyze
  measure "$1" "$2" "$3" bench bench
  # MIT Movie states no licence: none of its sentences is shown.
  case $3 in movie) ;; *) measure "$1" "$2" "$3" traces trace --pick 3 ;; esac
}

measure_all snips snips snips
measure_all pos pos ewt
"$tapir" check -o "$here/snips/check.json" > /dev/null
for run in "$runs"/*-trf "$runs"/*-lt "$runs"/*-bert "$runs"/*-d[12] "$runs"/*-generator; do
  name=$(basename "$run")
  task=${name%-generator}
  task=${task%-d[12]}
  [ ! -e "$run/model/config.json" ] || measure_all "$name" "$run" "${task%-*}"
done

"$tapir" report "$here" --notes "$here/notes.md" \
  --html "$here/../docs/report.html" --markdown "$here/../docs/results.md"
