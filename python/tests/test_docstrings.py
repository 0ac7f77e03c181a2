"""The examples of all docstrings run, those of the compiled module, too."""

from __future__ import annotations

import doctest
import importlib
import inspect
from types import ModuleType

import pytest

import tapir
from tapir import _tapir

MODULES = ["tapir", "tapir.corpora", "tapir.evaluation", "tapir.training"]


def docstrings(owner: ModuleType) -> dict[str, str]:
    """The docstrings of a compiled module by name: doctest finds none there by itself."""
    found: dict[str, str] = {}
    for name, value in vars(owner).items():
        members = {name: value}
        if inspect.isclass(value):
            members |= {f"{name}.{key}": member for key, member in vars(value).items()}
        found |= {key: doc for key, member in members.items() if (doc := member.__doc__)}
    return found


@pytest.mark.parametrize("name", MODULES)
def test_of_modules(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert tried > 0 and failed == 0


def test_of_the_compiled_module() -> None:
    runner = doctest.DocTestRunner()
    parser = doctest.DocTestParser()
    for name, doc in docstrings(_tapir).items():
        runner.run(parser.get_doctest(doc, {}, name, None, None))
    assert runner.tries > 20 and runner.failures == 0


def test_every_public_thing_says_what_it_is() -> None:
    silent = []
    for name in tapir.__all__:
        value = getattr(tapir, name)
        if not inspect.isclass(value) and not inspect.isfunction(value):
            continue
        members = vars(value) if inspect.isclass(value) else {}
        things = {name: value} | {f"{name}.{key}": member for key, member in members.items()}
        silent += [
            key for key, thing in things.items()
            if not key.split(".")[-1].startswith("_")
            and (callable(thing) or inspect.isdatadescriptor(thing))
            and not thing.__doc__
        ]
    assert silent == []
