#!/usr/bin/env python3
"""What each part of a recipe brings: results/ablations.py RUNS DATA [BASE…]

BASE is snips-trf, a run that results/train.sh has made, or snips-bert, whose reviser ships. Each
variant changes one setting, keeps the reviser where it can, and is measured at all thresholds on
test; one that is there is not made again. Prints the tables of docs/training.md. TAPIR names the
program, and all-MiniLM-L6-v2 is looked for in the working folder.
"""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

#: What a variant is called, what it does, and by which settings.
VARIANTS = {
    "snips-trf": {
        "whole": ("as it is", []),
        "generator": ("`actions = \"generator\"`", ["actions=generator"]),
        "inputs": ("`controller.inputs = []`", ["controller.inputs=[]"]),
        "distillation": ("`teaching.distillation = 0`", ["teaching.distillation=0"]),
        "rounds-1": ("`teaching.rounds = 1`", ["teaching.rounds=1"]),
        "rounds-3": ("`teaching.rounds = 3`", ["teaching.rounds=3"]),
        "lasting": ("`teaching.lasting = false`", ["teaching.lasting=false"]),
    },
    "snips-bert": {
        "whole": ("as it is", []),
        "spelling": ("`words.spelling = true`", ["words.spelling=true"]),
        "recombined": ("`teaching.recombined = 0`", ["teaching.recombined=0"]),
        "text": ("`teaching.text = \"english\"`", ["teaching.text=english"]),
        "distillation": ("`teaching.distillation = 0`", ["teaching.distillation=0"]),
        "layers-4": ("`reviser.layers = 4`", ["reviser.layers=4"]),
        "layers-3": ("`reviser.layers = 3`", ["reviser.layers=3"]),
    },
}
#: Shares of words revised at which variants are compared.
SHARES = (0.02, 0.05, 0.08, 0.12, 0.20)
#: Close to each other at both ends, where a small step of the threshold is a large one of the share.
ENDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
THRESHOLDS = (0, *ENDS, *(n / 10 for n in range(1, 10)), *(1 - end for end in reversed(ENDS)), 1)


Curve = list[tuple[float, float]]


def curve(sweep: dict[str, Any]) -> Curve:
    """Words revised and F1 at each threshold, least first."""
    measured = sweep["sweep"]["evaluations"]
    revised = [one["revisions"]["silver"]["recomputations"] / one["words"] for one in measured]
    return sorted(zip(revised, (one["scores"]["micro"]["f1"] for one in measured), strict=True))


def at(curve: Curve, share: float) -> float | None:
    """F1 at a share of words revised, on the line between its neighbours."""
    for (low, first), (high, second) in pairwise(curve):
        if low <= share <= high and low < high:
            return first + (second - first) * (share - low) / (high - low)
    return None


def made(tapir: str, base: str, run: Path, data: Path, settings: list[str]) -> Any:
    """What `tapir sweep` measures of a variant that `tapir train` has made."""
    task, reviser = base.split("-")
    preset = f"{'pretrained' if reviser == 'bert' else 'small'}/{task}"
    changed = [part for setting in settings for part in ("--set", setting)]
    keep = ["--reviser", "snips" if reviser == "bert" else run.parents[1] / base]
    if any(setting.startswith("reviser.") for setting in settings):
        keep = []
    train = [tapir, "train", preset, *keep, "--out", run, "--data", data, *changed]
    subprocess.run(train, check=True, stdout=sys.stderr)
    thresholds = ",".join(f"{threshold:g}" for threshold in THRESHOLDS)
    sweep = [tapir, "sweep", run, task, "--data", data, "--thresholds", thresholds, "--json"]
    return json.loads(subprocess.run(sweep, check=True, stdout=subprocess.PIPE).stdout)


def main() -> None:
    """The program."""
    runs, data = (Path(argument).absolute() for argument in sys.argv[1:3])
    tapir = os.environ.get("TAPIR", "tapir")
    for base in sys.argv[3:] or VARIANTS:
        file = Path(__file__).parent / "ablations" / f"{base}.json"
        known = json.loads(file.read_text()) if file.exists() else {"variants": {}}
        print("| | first pass |", " | ".join(f"{share:.0%}" for share in SHARES), "| reviser |")
        print("| --- |", " | ".join("---" for _ in range(2 + len(SHARES))), "|")
        for name, (what, settings) in VARIANTS[base].items():
            if name not in known["variants"]:
                sweep = made(tapir, base, runs / "ablations" / f"{base}-{name}", data, settings)
                known["provenance"] = sweep["provenance"]
                measured = {"settings": settings, **sweep["provenance"], "curve": curve(sweep)}
                known["variants"][name] = measured
                file.parent.mkdir(exist_ok=True)
                file.write_text(json.dumps(known, indent=2) + "\n")
            points = known["variants"][name]["curve"]
            scores = [points[0][1], *(at(points, share) for share in SHARES), points[-1][1]]
            cells = ("–" if score is None else f"{100 * score:.2f}" for score in scores)
            print(f"| {what} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
