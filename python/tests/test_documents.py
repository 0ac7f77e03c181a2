"""The programs of the documents run, and print what is shown."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "python/README.md", "docs/python.md"]
FRAMEWORKS = ["retico", "pipecat", "livekit", "wyoming"]
PACKAGES = {"retico": "retico_core", "livekit": "livekit.agents"}
PROGRAM = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)

#: Stands in for the sound card's library, which retico imports.
PYAUDIO = "import sys, types; sys.modules.setdefault('pyaudio', types.ModuleType('pyaudio'))\n"


def programs(document: str) -> list[tuple[str, str]]:
    return PROGRAM.findall((ROOT / document).read_text())


def run(program: str) -> str:
    # Not in the folder of the package, whose source would be imported instead of what is installed.
    folder = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents(document: str) -> None:
    found = programs(document)
    assert found
    for program, shown in found:
        printed = run(program)
        assert not shown or printed == shown


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_pages_of_frameworks(name: str) -> None:
    [(program, shown)] = programs(f"docs/integrations/{name}.md")
    assert len(program.splitlines()) <= 30 and shown
    package = PACKAGES.get(name, name)
    if find_spec(package.split(".")[0]) is None:
        pytest.skip(f"{package} is not installed")
    assert run((PYAUDIO if name == "retico" else "") + program) == shown
