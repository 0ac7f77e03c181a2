"""The module of retico, with the real package."""

from __future__ import annotations

import json
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import pytest

import tapir

# retico opens the sound card's library when it is imported; text needs none.
try:
    import pyaudio  # noqa: F401
except ImportError:
    sys.modules["pyaudio"] = types.ModuleType("pyaudio")

pytest.importorskip("retico_core", reason="pip install retico-core==2.0.1")

import retico_core
from retico_core import UpdateMessage, UpdateType
from retico_core.text import SpeechRecognitionIU, TextTriggerModule, get_text_increment

from tapir.integrations.retico import DialogueActModule, LabelledIU, TapirModule


class Recogniser(retico_core.AbstractModule):
    """Says what it is told, in units of one word, as retico's recognisers do."""

    name = description = staticmethod(lambda: "recogniser")
    output_iu = staticmethod(lambda: SpeechRecognitionIU)

    def __init__(self) -> None:
        super().__init__()
        self.current_output: list[Any] = []

    def say(self, text: str, final: bool = False) -> UpdateMessage:
        message, new = get_text_increment(self, text)
        for word in new:
            unit = self.create_iu()
            unit.set_asr_results([word], word, 1.0, 1.0, final)
            self.current_output.append(unit)
            message.add_iu(unit, UpdateType.ADD)
        if final:
            for unit in self.current_output:
                message.add_iu(unit, UpdateType.COMMIT)
            self.current_output = []
        return message


class Listener:
    """Follows the units as another module would."""

    def __init__(self) -> None:
        self.units: list[LabelledIU] = []
        self.committed: list[LabelledIU] = []

    def hear(self, message: UpdateMessage | None) -> None:
        for unit, kind in message or ():
            if kind == UpdateType.ADD:
                assert unit not in self.units
                self.units.append(unit)
            elif kind == UpdateType.REVOKE:
                assert unit.revoked
                self.units.remove(unit)
            elif kind == UpdateType.UPDATE:
                assert unit in self.units
            else:
                assert unit in self.units and unit.committed
                self.committed.append(unit)

    def read(self) -> list[tuple[str, str | None]]:
        return [(unit.text, unit.label) for unit in self.units]


def labels(model: tapir.Model, text: str) -> list[tuple[str, str]]:
    session = model.session()
    words = model.words(text)
    session.update(words)
    return list(zip(words, session.labels, strict=True))


def test_units_follow_the_recogniser(snips: tapir.Model) -> None:
    recogniser, module, listener = Recogniser(), TapirModule(snips), Listener()
    texts = ["add", "add step two", "add step to me", "and step to me", "add step to me to the"]
    for text in texts:
        message = recogniser.say(text)
        listener.hear(module.process_update(message))
        heard = " ".join(unit.text for unit in recogniser.current_output)
        assert listener.read() == labels(snips, heard)
        assert [unit.grounded_in for unit in listener.units] == recogniser.current_output
    listener.hear(module.process_update(recogniser.say("add step to me to the list", True)))
    assert listener.committed == listener.units
    words = [unit.text for unit in listener.units]
    assert [unit.label for unit in listener.units] == snips.tag([words])[0].labels
    after = Listener()
    after.hear(module.process_update(recogniser.say("play jazz")))
    assert after.read() == labels(snips, "play jazz"), "a new utterance"


def test_an_utterance_ends_with_the_message_that_commits_it(snips: tapir.Model) -> None:
    """A recogniser sets flags on units that it shares, before its messages are read."""
    recogniser, module, listener = Recogniser(), TapirModule(snips), Listener()
    first = recogniser.say("play some")
    units = list(recogniser.current_output)
    last = recogniser.say("play some jazz", final=True)
    for unit, _ in last:
        unit.committed = True
    listener.hear(module.process_update(first))
    assert [unit.text for unit in listener.units] == ["play", "some"] and not listener.committed
    assert module.current_input == units
    listener.hear(module.process_update(last))
    assert [unit.text for unit in listener.committed] == ["play", "some", "jazz"]
    assert [unit.label for unit in listener.committed] == snips.tag("play some jazz").labels


def test_what_is_left_after_a_revoke_is_no_end(snips: tapir.Model) -> None:
    """A recogniser commits the start of an utterance and rewrites the rest."""
    recogniser, module, listener = Recogniser(), TapirModule(snips), Listener()
    listener.hear(module.process_update(recogniser.say("play sum")))
    play, _ = recogniser.current_output
    listener.hear(module.process_update(UpdateMessage.from_iu(play, UpdateType.COMMIT)))
    revoke, _ = retico_core.text.get_text_increment(recogniser, "play some")
    listener.hear(module.process_update(revoke))
    assert listener.read() == labels(snips, "play") and not listener.committed
    listener.hear(module.process_update(recogniser.say("play some jazz", final=True)))
    assert [unit.text for unit in listener.committed] == ["play", "some", "jazz"]


def test_a_label_that_changes_is_an_update(snips: tapir.Model) -> None:
    recogniser, module = Recogniser(), TapirModule(snips)
    module.process_update(recogniser.say("add step to"))
    message = module.process_update(recogniser.say("add step to me"))
    kinds = [(unit.text, unit.label, kind) for unit, kind in message or ()]
    assert kinds == [
        ("to", "I-entity_name", UpdateType.UPDATE),
        ("me", "I-entity_name", UpdateType.ADD),
    ]


def test_a_word_in_the_middle_is_revoked_alone(snips: tapir.Model) -> None:
    recogniser, module, listener = Recogniser(), TapirModule(snips), Listener()
    listener.hear(module.process_update(recogniser.say("play some very slow jazz")))
    before = {unit.text: unit for unit in listener.units}
    gone = recogniser.current_output.pop(2)
    listener.hear(module.process_update(UpdateMessage.from_iu(gone, UpdateType.REVOKE)))
    assert listener.read() == labels(snips, "play some slow jazz")
    assert listener.units == [before[word] for word in ("play", "some", "slow", "jazz")]


def test_an_update_that_comes_in(snips: tapir.Model) -> None:
    recogniser, module, listener = Recogniser(), TapirModule(snips), Listener()
    message = recogniser.say("play sum jazz")
    listener.hear(module.process_update(message))
    unit = recogniser.current_output[1]
    for text in ("some", "some more"):
        unit.text = text
        listener.hear(module.process_update(UpdateMessage.from_iu(unit, UpdateType.UPDATE)))
        assert listener.read() == labels(snips, f"play {text} jazz")
        grounded = [one.grounded_in for one in listener.units]
        assert grounded.count(unit) == len(text.split())


def test_an_update_that_comes_as_a_new_object(snips: tapir.Model) -> None:
    recogniser, module, listener = Recogniser(), TapirModule(snips), Listener()
    listener.hear(module.process_update(recogniser.say("play some jazz")))
    before = list(listener.units)
    old = recogniser.current_output[1]
    new = SpeechRecognitionIU(creator=recogniser, iuid=old.iuid)
    for text in ("some", "some more"):
        new.set_asr_results([text], text, 1.0, 1.0, False)
        listener.hear(module.process_update(UpdateMessage.from_iu(new, UpdateType.UPDATE)))
        assert listener.read() == labels(snips, f"play {text} jazz")
        grounded = [unit.grounded_in for unit in listener.units]
        assert sum(unit is new for unit in grounded) == len(text.split())
        assert not any(unit is old for unit in grounded)
        if text == "some":
            assert listener.units == before, "no unit is replaced"


def test_words_of_a_long_stream_are_committed(snips: tapir.Model) -> None:
    recogniser, listener = Recogniser(), Listener()
    module = TapirModule(snips, window=8, undo=4, threshold=1.0)
    words = ["play", "some", "jazz"] * 12
    for count in range(1, len(words) + 1):
        listener.hear(module.process_update(recogniser.say(" ".join(words[:count]))))
    assert listener.committed == listener.units[: len(words) - 12]
    module.end()


def test_labels_that_have_settled_are_committed(snips: tapir.Model) -> None:
    recogniser, listener = Recogniser(), Listener()
    module = TapirModule(snips, settled=0.95)
    session, settled = snips.session(settled=0.95), set[int]()
    words = "add step to me to the fifty clasicos".split()
    for count in range(1, len(words) + 1):
        update = session.push(words[count - 1])
        settled |= set(update.settled.words if update.settled else ())
        listener.hear(module.process_update(recogniser.say(" ".join(words[:count]))))
        committed = {unit.iuid for unit in listener.committed}
        assert committed == {listener.units[position].iuid for position in settled}
    assert 0 < len(settled) < len(words), "some of an utterance that goes on"
    listener.hear(module.process_update(recogniser.say(" ".join(words), final=True)))
    committed = {unit.iuid for unit in listener.committed}
    assert committed == {unit.iuid for unit in listener.units}
    assert len(listener.committed) == len(words), "each once"


def test_words_that_the_recogniser_doubts_do_not_settle(snips: tapir.Model) -> None:
    recogniser, module, listener = Recogniser(), TapirModule(snips, settled=0.95), Listener()
    message = recogniser.say("play some jazz")
    # The last two say nothing of it.
    for unit, stability in zip(recogniser.current_output, (0.5, 0.0, None), strict=True):
        unit.stability = stability
    listener.hear(module.process_update(message))
    assert [unit.text for unit in listener.committed] == ["some", "jazz"]
    # What is committed stays, whatever was said before.
    play = recogniser.current_output[0]
    listener.hear(module.process_update(UpdateMessage.from_iu(play, UpdateType.COMMIT)))
    assert len(listener.committed) == 3


def test_a_network_that_runs(snips: tapir.Model) -> None:
    """Two modules in threads of their own, as in a real system."""
    recogniser, module, heard = Recogniser(), TapirModule(snips), list[Any]()

    class Sink(retico_core.AbstractConsumingModule):
        name = description = staticmethod(lambda: "sink")
        input_ius = staticmethod(lambda: [LabelledIU])

        def process_update(self, update_message: UpdateMessage) -> None:
            heard.extend((unit.text, kind) for unit, kind in update_message)

    sink = Sink(sleep_interval=0.005)
    recogniser.subscribe(module)
    module.subscribe(sink)
    module.run()
    sink.run()
    try:
        recogniser.append(recogniser.say("play some"))
        recogniser.append(recogniser.say("play some jazz", final=True))
        deadline = time.monotonic() + 20
        while len(heard) < 6 and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        module.stop()
        sink.stop()
    assert heard[:3] == [(word, UpdateType.ADD) for word in ("play", "some", "jazz")]
    assert heard[-3:] == [(word, UpdateType.COMMIT) for word in ("play", "some", "jazz")]


def test_what_an_utterance_is_about_is_one_unit() -> None:
    model = tapir.Model.load("snips")
    recogniser, module = Recogniser(), DialogueActModule(model)
    acts: list[Any] = []
    said: list[tuple[Any, UpdateType]] = []
    for text, final in [("play", False), ("play some", False), ("play some jazz", True)]:
        message = module.process_update(recogniser.say(text, final))
        for unit, kind in message or ():
            acts.append(unit)
            said.append((unit.act, kind))
    assert len({id(unit) for unit in acts}) == 1
    assert said[0] == ("PlayMusic", UpdateType.ADD)
    assert said[-1] == ("PlayMusic", UpdateType.COMMIT)
    assert acts[-1].concepts == {"genre": ["jazz"]}
    assert 0.5 < acts[-1].confidence <= 1.0
    assert acts[-1].grounded_in.text == "jazz"
    message = module.process_update(recogniser.say("book a table"))
    kinds = [(unit.act, kind) for unit, kind in message or ()]
    assert kinds == [("BookRestaurant", UpdateType.ADD)], "a new utterance"


def test_an_utterance_that_is_taken_back_is_about_nothing() -> None:
    recogniser, module = Recogniser(), DialogueActModule("snips")
    module.process_update(recogniser.say("play jazz"))
    message = UpdateMessage()
    for unit in reversed(recogniser.current_output):
        message.add_iu(unit, UpdateType.REVOKE)
    kinds = [kind for _, kind in module.process_update(message) or ()]
    assert kinds == [UpdateType.REVOKE]


def test_an_utterance_that_is_not_for_the_model_has_no_act(outside: str) -> None:
    recogniser, module = Recogniser(), DialogueActModule("snips")
    words = outside.split()
    acts: list[Any] = []
    for count in range(1, len(words) + 1):
        said = recogniser.say(" ".join(words[:count]), final=count == len(words))
        for unit, kind in module.process_update(said) or ():
            acts.append(unit) if kind == UpdateType.ADD else None
            acts.remove(unit) if kind == UpdateType.REVOKE else None
            assert kind != UpdateType.COMMIT
    assert acts == []
    message = module.process_update(recogniser.say("play some jazz"))
    assert [(unit.act, kind) for unit, kind in message or ()] == [("PlayMusic", UpdateType.ADD)]


def test_a_model_without_intents_says_so(pos: tapir.Model) -> None:
    with pytest.raises(tapir.Error, match="knows no intents"):
        DialogueActModule(pos)


def test_an_act_is_grounded_in_what_is_there() -> None:
    recogniser, module = Recogniser(), DialogueActModule("snips")
    module.process_update(recogniser.say("play some jazz"))
    [act] = module.current_output
    # Neither act nor concepts depend on the last word.
    module.process_update(recogniser.say("play some jazz please"))
    act.grounded_in = gone = recogniser.current_output.pop()
    message = module.process_update(UpdateMessage.from_iu(gone, UpdateType.REVOKE))
    assert [(unit, kind) for unit, kind in message or ()] == [(act, UpdateType.UPDATE)]
    assert act.grounded_in is recogniser.current_output[-1]
    assert act.concepts == {"genre": ["jazz"]}


def test_an_act_is_grounded_in_the_newest_object_of_a_unit() -> None:
    recogniser, module = Recogniser(), DialogueActModule("snips")
    module.process_update(recogniser.say("play some jazz"))
    [act] = module.current_output
    new = SpeechRecognitionIU(creator=recogniser, iuid=act.grounded_in.iuid)
    new.set_asr_results(["jazz"], "jazz", 1.0, 1.0, False)
    message = module.process_update(UpdateMessage.from_iu(new, UpdateType.UPDATE))
    assert [(unit, kind) for unit, kind in message or ()] == [(act, UpdateType.UPDATE)]
    assert act.grounded_in is new


@pytest.mark.parametrize("bad", ["x" * 5000, "\ud800"])
def test_a_unit_that_nobody_can_read_is_left_out(
    snips: tapir.Model, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    recogniser, module, listener = Recogniser(), TapirModule(snips), Listener()
    listener.hear(module.process_update(recogniser.say("play some")))
    listener.hear(module.process_update(recogniser.say(f"play some {bad}")))
    assert listener.read() == labels(snips, "play some")
    listener.hear(module.process_update(recogniser.say(f"play some {bad} jazz")))
    assert listener.read() == labels(snips, "play some jazz")
    assert len([record for record in caplog.records if "leaves a unit out" in record.message]) == 1
    # Its text may be mended.
    unit = recogniser.current_output[2]
    unit.text = "slow"
    listener.hear(module.process_update(UpdateMessage.from_iu(unit, UpdateType.UPDATE)))
    assert listener.read() == labels(snips, "play some slow jazz")
    message = UpdateMessage()
    for unit in recogniser.current_output:
        message.add_iu(unit, UpdateType.COMMIT)
    listener.hear(module.process_update(message))
    assert listener.committed == listener.units


def test_a_module_that_runs_outlives_a_unit_that_nobody_can_read(snips: tapir.Model) -> None:
    recogniser, module, heard = Recogniser(), TapirModule(snips), list[Any]()
    queue = retico_core.IncrementalQueue(module, None)
    recogniser.subscribe(module)
    module.add_right_buffer(queue)
    module.run()
    try:
        recogniser.append(recogniser.say("x" * 5000))
        recogniser.append(recogniser.say("x" * 5000 + " play"))
        heard = list(queue.get(timeout=20))
    finally:
        module.stop()
    assert [(unit.text, kind) for unit, kind in heard] == [("play", UpdateType.ADD)]


def test_a_label_goes_to_another_process(snips: tapir.Model) -> None:
    recogniser, module = Recogniser(), TapirModule(snips)
    sent = [
        json.dumps(unit.to_zmq(kind))
        for unit, kind in module.process_update(recogniser.say("play some jazz")) or ()
    ]
    there = TapirModule(snips)
    received = []
    for data in map(json.loads, sent):
        unit = there.create_iu()
        unit.from_zmq(data)
        received.append((unit.text, unit.label))
    assert received == labels(snips, "play some jazz")


def test_a_network_that_is_saved_and_loaded(snips: tapir.Model, tmp_path: Path) -> None:
    trigger = TextTriggerModule()
    module = TapirModule(snips, threshold=0.2, end_on_commit=False, meta_data={"x": 7})
    acts = DialogueActModule("snips", settled=0.95, sleep_interval=0.01)
    trigger.subscribe(module)
    trigger.subscribe(acts)
    retico_core.network.save(trigger, str(tmp_path / "network"))
    modules, connections = retico_core.network.load(str(tmp_path / "network.rtc"))
    kinds = {type(one): one for one in modules}
    again = kinds[TapirModule]
    assert len(connections) == 2 and isinstance(again, TapirModule)
    assert again.get_init_arguments().keys() == module.get_init_arguments().keys()
    assert again._utterance.model.task == "snips" and again._utterance.model.intents is None
    assert again.end_on_commit is False and again.meta_data == {"x": 7}
    assert kinds[DialogueActModule].get_init_arguments() == acts.get_init_arguments() == {
        "model": "snips", "end_on_commit": True, "sleep_interval": 0.01, "settled": 0.95,
        "meta_data": {},
    }
    message = again.process_update(Recogniser().say("play some jazz"))
    assert [(unit.text, unit.label) for unit, _ in message or ()] == labels(snips, "play some jazz")


def test_the_end_waits_for_the_thread_of_the_module(snips: tapir.Model) -> None:
    recogniser, module = Recogniser(), TapirModule(snips, end_on_commit=False)
    queue = retico_core.IncrementalQueue(module, None)
    module.add_right_buffer(queue)
    module.append(module.process_update(recogniser.say("play jazz")))
    queue.get_nowait()
    end = threading.Thread(target=module.end)
    with module.mutex:
        end.start()
        end.join(0.3)
        assert end.is_alive() and queue.empty(), "an update is going on"
    end.join(20)
    kinds = [kind for _, kind in queue.get_nowait()]
    assert kinds == [UpdateType.COMMIT] * 2


def test_what_is_committed_is_never_altered(snips: tapir.Model) -> None:
    """Not even if the recogniser takes back so much that the utterance is read anew."""
    recogniser, listener = Recogniser(), Listener()
    module = TapirModule(snips, window=4, undo=2, threshold=1.0)
    words = "play some jazz by miles davis".split() * 3
    for count in range(1, len(words) + 1):
        listener.hear(module.process_update(recogniser.say(" ".join(words[:count]))))
    committed = {id(unit): (unit.text, unit.label) for unit in listener.committed}
    assert len(committed) > 6
    altered: list[Any] = []

    def hear(message: UpdateMessage | None) -> None:
        altered.extend(unit for unit, _ in message or () if id(unit) in committed)
        listener.hear(message)

    # An UPDATE of one, by which others would have other labels; then all of them are taken back.
    unit = recogniser.current_output[0]
    unit.text = "rate"
    hear(module.process_update(UpdateMessage.from_iu(unit, UpdateType.UPDATE)))
    assert [unit.text for unit in listener.units] == words, "its word is committed"
    hear(module.process_update(recogniser.say("rate a table")))
    assert altered == []
    for unit in listener.committed:
        assert (unit.text, unit.label) == committed[id(unit)] and not unit.revoked
    assert [unit.text for unit in listener.units[len(committed) :]] == ["a", "table"]
