#!/usr/bin/env bash
# Measures models and makes the report: results/measure.sh DATA [RUNS]
#
# First the models that ship, then every run in RUNS, which results/train.sh has made and named
# TASK-REVISER[-dDELAY][-generator] (snips-trf, conll-pos-lt, snips-bert, snips-trf-generator,
# snips-paper). DATA holds the corpora. Each model has a folder here. A measurement that is there is
# not taken again: delete its file for that. TAPIR names the program.
set -euo pipefail
data=$(realpath "$1") runs=${2:+$(realpath "$2")}
here=$(cd "$(dirname "$0")" && pwd)
tapir=${TAPIR:-tapir}

measure() { # folder, model, task, file, command, flags
  local file=$here/$1/$4.json
  [ -e "$file" ] || "$tapir" "$5" "$2" "$3" --data "$corpora" -o "$file" "${@:6}" > /dev/null
}

# What is not for a model of SNIPS: the test splits of two other corpora, and requests for flights.
others=$(mktemp -d)
trap 'rm -r "$others"' EXIT
cp "$here/flights.txt" "$others/flights"
sed -n 's/^# text = //p' "$data/ud-ewt/en_ewt-ud-test.conllu" > "$others/ewt"
awk -v to="$others/" '/^# text: /{text = substr($0, 9)}
  /^# intent: /{print text > (to ($3 ~ /^weather/ ? "arw-weather" : "arw-alarms"))}' "$data/arw/test-en.conllu"
cd "$others"

measure_all() { # folder, model, task
  echo "$1"
  outside=() corpora=$data
  case $3 in */*) corpora=${3%/*} ;; esac
  # The small one that ships knows no intents, nor does the paper's.
  case $1 in snips-small|snips-paper) ;; snips*) outside=(--outside ewt --outside arw-alarms --outside arw-weather --outside flights) ;; esac
  measure "$1" "$2" "$3" eval eval --reference "${outside[@]}"
  measure "$1" "$2" "$3" sweep sweep
  measure "$1" "$2" "$3" analysis analyze
  measure "$1" "$2" "$3" bench bench
  # MIT Movie states no licence: none of its sentences is shown.
  case $3 in movie) ;; *) measure "$1" "$2" "$3" traces trace --pick 3 ;; esac
}

measure_all snips snips snips
measure_all snips-small snips-small snips
measure_all pos pos ewt
"$tapir" check -o "$here/snips/check.json" > /dev/null
for run in "$runs"/*-trf "$runs"/*-lt "$runs"/*-bert "$runs"/*-d[12] "$runs"/*-generator "$runs"/*-paper; do
  name=$(basename "$run")
  task=${name%-generator}
  task=${task%-d[12]}
  task=${task%-*}
  # The task of results/chunks.py lies beside its run.
  [ "$task" != chunks ] || task=$runs/chunks/chunks.toml
  [ ! -e "$run/model/config.json" ] || measure_all "$name" "$run" "$task"
done

"$tapir" report "$here" --notes "$here/notes.md" \
  --html "$here/../docs/report.html" --markdown "$here/../docs/results.md"
