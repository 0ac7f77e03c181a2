#!/usr/bin/env bash
# Trains the models that the report is about: results/train.sh RUNS DATA [RUN…]
#
# RUNS is a folder for the runs of `tapir train`, DATA holds the corpora (docs/data.md). A run that is
# done is not trained again, and one that was stopped goes on. Without names all are trained, small
# ones first. TAPIR names the program.
set -euo pipefail
runs=$1 data=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
tapir=${TAPIR:-tapir}
[ $# -gt 0 ] || set -- snips-trf movie-trf ewt-trf snips-lt movie-lt ewt-lt snips-trf-d1 snips-trf-d2 arw-trf arw-lt

for name in "$@"; do
  task=${name%%-*}
  flags=()
  # As the paper's: Movie and ARW on training and validation split together.
  case $task in
    movie) flags+=(--set with_valid=true) ;;
    arw) flags+=(--set with_valid=true --set training.reviser.epochs=28 --set training.reviser.schedule.decay=26) ;;
  esac
  case $name in *-d[12]) flags+=(--set "delay=${name##*-d}") ;; esac
  case $name in
    *-lt)
      flags+=(--set reviser.kind=linear-transformer)
      # Also as the paper's: actions and first pass are those of the run with a Transformer.
      mkdir -p "$runs/$name"
      for file in generator.safetensors generator.json actions.tsv first-pass.safetensors first-pass.json; do
        [ ! -e "$runs/${name%-lt}-trf/$file" ] || cp -n "$runs/${name%-lt}-trf/$file" "$runs/$name/"
      done
      ;;
  esac
  [ -e "$here/$name/training.json" ] ||
    "$tapir" train "small/$task" "${flags[@]}" --data "$data" --out "$runs/$name" --results "$here/$name/training.json"
done
