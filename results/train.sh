#!/usr/bin/env bash
# Trains the models that the report is about: results/train.sh RUNS DATA [RUN…]
#
# RUNS is a folder for the runs of `tapir train`, DATA holds the corpora (docs/data.md). A run that is
# done is not trained again, and one that was stopped goes on. Without names all are trained, small
# ones first. TAPIR names the program, ENCODER the folder of the encoder that runs called -bert are
# fine-tuned from (docs/training.md).
set -euo pipefail
runs=$1 data=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
tapir=${TAPIR:-tapir}
[ $# -gt 0 ] || set -- {snips,movie,ewt,arw,chunks}-trf {snips,movie,ewt,arw}-lt \
  {snips,movie,ewt,arw}-{trf,lt}-{d1,d2} {snips,movie,arw}-trf-generator snips-paper \
  {snips,movie,ewt,arw}-bert

for name in "$@"; do
  task=${name%-generator}
  task=${task%-d[12]}
  task=${task%-*}
  preset=small/$task corpora=$data
  flags=()
  case $task in
    # Written sentences of another kind, by the recipe for CoNLL-2003.
    chunks)
      preset=small/conll-chunk corpora=$runs flags+=(--set "task=$runs/chunks/chunks.toml")
      [ -e "$runs/chunks/chunks.toml" ] || "$here/chunks.py" "$data/ud-ewt" "$runs/chunks"
      ;;
  esac
  case $name in
    # As the paper's: on training and validation split together.
    *-paper) preset=paper/$task-trf flags=(--set with_valid=true) ;;
    *-bert*) preset=pretrained/$task flags=(--set "reviser.pretrained=${ENCODER:-all-MiniLM-L6-v2}") ;;
  esac
  case $name in *-lt*) flags+=(--set reviser.kind=linear-transformer) ;; esac
  case $name in *-d[12]) flags+=(--set "delay=${name##*-d}") ;; esac
  # The same reviser with the paper's policy.
  case $name in
    *-generator)
      flags+=(--set actions=generator --set controller.inputs=[] --set teaching.distillation=0 --set choose= --set threshold=0.5)
      mkdir -p "$runs/$name"
      for file in reviser.safetensors reviser.json; do
        [ ! -e "$runs/${name%-generator}/$file" ] || cp -n "$runs/${name%-generator}/$file" "$runs/$name/"
      done
      ;;
  esac
  [ -e "$here/$name/training.json" ] ||
    "$tapir" train "$preset" "${flags[@]}" --data "$corpora" --out "$runs/$name" --results "$here/$name/training.json"
done
