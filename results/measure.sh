#!/usr/bin/env bash
# Measures every model under a folder of runs and makes the report: results/measure.sh RUNS DATA
#
# RUNS holds the runs of `tapir train`, named TASK-REVISER[-dDELAY] (snips-trf, conll-pos-lt, snips-trf-d1); DATA holds the corpora.
# A measurement that is there is not taken again: delete its file for that. TAPIR names the program.
set -euo pipefail
runs=$1 data=$2
here=$(cd "$(dirname "$0")" && pwd)
tapir=${TAPIR:-tapir}

for run in "$runs"/*-trf "$runs"/*-lt "$runs"/*-d[12]; do
  model=$run/model
  [ -e "$model/config.json" ] || continue
  name=$(basename "$run")
  task=${name%-d[12]} task=${task%-*}
  measure() { # file, command, flags
    local file=$here/$name-$1.json
    shift
    [ -e "$file" ] || "$tapir" "$1" "$model" "$task" --data "$data" -o "$file" "${@:2}" > /dev/null
  }
  echo "$name"
  measure eval eval --reference
  measure sweep sweep
  measure analysis analyze
  measure bench bench
  # MIT Movie states no licence: none of its sentences is shown.
  case $name in movie-*) ;; *-trf) measure traces trace --pick 3 ;; esac
done

"$tapir" report "$here" --notes "$here/notes.md" --html "$here/../docs/report.html" --markdown "$here/../docs/results.md"
