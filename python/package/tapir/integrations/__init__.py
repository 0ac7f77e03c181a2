"""Adapters for voice frameworks: retico, Pipecat, LiveKit agents and Wyoming.

Each module needs the package of its framework, which `pip install tapir-nlp[retico]` (or `pipecat`,
`livekit`, `wyoming`) brings.
"""

from .turn import Turn
from .utterance import Labelled, Utterance

__all__ = ["Labelled", "Turn", "Utterance"]
