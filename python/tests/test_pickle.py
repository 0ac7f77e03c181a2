"""Models and results go to other processes, forked and spawned."""

from __future__ import annotations

import multiprocessing
import pickle
import shutil
from pathlib import Path

import pytest

import tapir

TEXTS = ["play some jazz", "book a table in boston for 5", "add step to me"]
CORPUS = [(["play", "jazz"], ["O", "B-genre"])]


def test_a_model_that_ships_goes_by_name(snips: tapir.Model) -> None:
    data = pickle.dumps(snips)
    assert len(data) < 200
    assert pickle.loads(data).tag(TEXTS) == snips.tag(TEXTS)


@pytest.mark.parametrize("name", ["snips", "pos"])
def test_a_model_on_disk_goes_with_its_files(name: str, tmp_path: Path) -> None:
    shipped = tapir.Model.load(name)
    shipped.save(tmp_path / "model")
    model = tapir.Model.load(tmp_path / "model")
    data = pickle.dumps(model)
    shutil.rmtree(tmp_path / "model")
    assert pickle.loads(data).tag(TEXTS) == shipped.tag(TEXTS)
    assert pickle.dumps(pickle.loads(data)) == data


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_results_are_pickled(snips: tapir.Model, protocol: int) -> None:
    session = snips.session()
    update = session.update("add step to me")
    tagged = snips.tag(TEXTS[0])
    intent = tapir.Intent("PlayMusic", 0.5, changed=True)
    about = tapir.Update(1, length=1, intent=intent)
    assert "intent=PlayMusic 0.500" in repr(about) and about.intent == intent
    domains = [(None, False), (0.5, False), (0.4, True)]
    for in_domain, outside in domains:
        assert tapir.Intent("PlayMusic", 0.5, in_domain=in_domain).outside is outside
    for thing in (
        *(update, update.edits[0], tagged.spans[0], session.spans[0], tagged),
        *(intent, about, tapir.Tagged(["play"], ["O"], [1.0], None, [], intent)),
    ):
        again = pickle.loads(pickle.dumps(thing, protocol))
        assert again == thing and repr(again) == repr(thing)
    trace = snips.trace(TEXTS[2])
    again = pickle.loads(pickle.dumps(trace, protocol))
    assert again == trace and again.to_svg() == trace.to_svg() and str(again) == str(trace)
    end = session.finish()
    back = pickle.loads(pickle.dumps(end, protocol))
    assert back == end and repr(back) == repr(end) and back.spans
    assert back != tapir.Finish(end.first, end.labels, end.spans, update)
    with pytest.raises(TypeError, match="pickle the model and the words"):
        pickle.dumps(session, protocol)
    error = pickle.loads(pickle.dumps(tapir.Error("why"), protocol))
    assert type(error) is tapir.Error and str(error) == "why"


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_other_processes(snips: tapir.Model, method: str) -> None:
    # Threads of this process have worked before the fork.
    expected, measured = snips.tag(TEXTS), tapir.evaluate(snips, CORPUS)
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        result = pool.starmap_async(tapir.Model.tag, [(snips, [text]) for text in TEXTS])
        assert [one for [one] in result.get(timeout=60)] == expected
        assert pool.apply_async(tapir.evaluate, (snips, CORPUS)).get(timeout=60) == measured
