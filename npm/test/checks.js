// What holds wherever the package runs: each check is a test in Node and in every browser.

import { apply, Model, start } from "../index.js";
import instantiate from "../wasm/tapir_wasm.js";
import { TapirWorker } from "../worker.js";
import { equal, failure, ok, refuses } from "./expect.js";

const loaded = new Map();

/** A model in the package, loaded once. */
function load(name = "snips-small") {
  if (!loaded.has(name)) loaded.set(name, Model.load(name));
  return loaded.get(name);
}

/** Numbers that look random, the same every time. */
function randoms(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const SENTENCE = "add step to me to the fifty clasicos playlist".split(" ");

export const checks = {
  async "the module runs with simd128"() {
    equal((await load()).info().kernels, "simd128");
  },

  async "a model says what it is"() {
    const { labels, scheme, mode, threshold, delay, maxLength, task, calibrated } = (await load()).info();
    equal([labels.length, labels[0], task], [72, "O", "snips"]);
    equal([scheme, mode, threshold, delay, maxLength, calibrated], ["iob", "two-pass", 0.1, 0, 200, true]);
    const pos = (await load("pos")).info();
    equal([pos.labels.length, pos.scheme], [17, "plain"]);
  },

  async "a text is labelled, and its words are where they say"() {
    const model = await load();
    const text = "Play 🎷 some jazz by Miles Davis!";
    const { words, labels, offsets, probabilities, spans } = model.tag(text);
    equal(words.join(" "), "play some jazz by miles davis");
    equal(labels, ["O", "O", "B-genre", "O", "B-artist", "I-artist"]);
    equal(offsets.map(([from, to]) => text.slice(from, to).toLowerCase()), words);
    ok(probabilities.length === 6 && probabilities.every((p) => p > 0 && p <= 1), "probabilities");
    equal(spans, [{ label: "genre", start: 2, end: 3 }, { label: "artist", start: 4, end: 6 }]);
    equal(model.tag(words).labels, labels);
    equal(model.tag(words).offsets, undefined);
    equal(model.tag("").words, []);
    equal(model.words("What's on?"), ["what", "s", "on"]);
  },

  async "replaying updates gives the labels, whatever is taken back"() {
    const model = await load();
    const options = { undo: 16, threshold: 0.05 };
    const session = model.session(options);
    const random = randoms(7);
    const shown = [];
    const said = [];
    const fresh = (words) => {
      const other = model.session(options);
      other.update(words);
      const labels = other.labels();
      other.free();
      return labels;
    };
    for (let step = 0; step < 120; step++) {
      const kind = random(4);
      if (kind === 0 && said.length > 2) {
        const words = 1 + random(2);
        apply(session.revoke(words), shown);
        said.length -= words;
      } else if (kind === 1) {
        said.splice(Math.max(0, said.length - random(4)), said.length, SENTENCE[random(9)], SENTENCE[random(9)]);
        apply(session.update([...said]), shown);
      } else {
        said.push(SENTENCE[random(9)]);
        apply(session.push(said.at(-1)), shown);
      }
      equal(shown, session.labels(), `step ${step}`);
      if (said.length > 24) {
        said.length = 12;
        apply(session.update([...said]), shown);
      }
      if (step % 10 === 0) equal(session.labels(), fresh(said), `as a fresh session, step ${step}`);
    }
    equal(session.words(), said.length);
    apply(session.finish(), shown);
    equal(shown, session.labels());
    session.free();
  },

  async "undo is exact"() {
    const session = (await load()).session();
    for (const word of SENTENCE) session.push(word);
    const before = [session.labels(), [...session.probabilities()], [...session.stabilities()], session.spans()];
    for (const word of ["by", "miles", "davis"]) session.push(word);
    equal(session.undoable(), 12);
    equal(session.revoke(3).length, 9);
    equal([session.labels(), [...session.probabilities()], [...session.stabilities()], session.spans()], before);
    equal(session.revoke().step, 8);
    session.reset();
    equal([session.words(), session.labels(), session.committed(), session.first()], [0, [], 0, 0]);
    ok(session.bytes() > 1000, "bytes");
    session.free();
  },

  async "a session can be asked for what it knows"() {
    const model = await load();
    const session = model.session({ settled: 0.9 });
    const settled = new Set();
    for (const word of SENTENCE) for (const at of session.push(word).settled?.words ?? []) settled.add(at);
    const end = session.finish();
    for (const at of end.settled?.words ?? []) settled.add(at);
    equal(settled.size, 9);
    equal(end.labels, session.labels());
    equal(end.spans, session.spans());
    equal(end.first, 0);
    equal(end.spans.map(({ label }) => label), ["entity_name", "playlist"]);
    equal(session.spanStability(end.spans[0]), 1);
    equal(session.spanStability({ label: "x", start: 5, end: 3 }), undefined);
    const distribution = session.distribution(1);
    equal(distribution.length, model.info().labels.length);
    ok(Math.abs(distribution.reduce((a, b) => a + b) - 1) < 1e-4, "a distribution");
    equal(session.distribution(9), undefined);
    equal([session.intent(), session.intentDistribution(), session.inDomain()], [undefined, undefined, undefined]);
    await refuses(() => session.push("more"), /session is finished/);
    await refuses(() => session.finish(), /session is finished/);
    equal(session.labels(), end.labels);
    session.reset();
    equal(session.finish().labels, []);
    session.free();
  },

  async "options do what they say"() {
    const model = await load();
    const actions = (options) => {
      const session = model.session(options);
      const taken = SENTENCE.map((word) => session.push(word).action);
      session.free();
      return new Set(taken);
    };
    equal([...actions({ threshold: 0 })], ["REVISE"]);
    equal([...actions({ threshold: 1 })], ["WRITE"]);
    equal([...actions({ mode: "first-pass" })], ["WRITE"]);
    equal([...actions({ mode: "restart" })], ["REVISE"]);
    const short = model.session({ window: 6, undo: 2 });
    for (let i = 0; i < 100; i++) short.push(SENTENCE[i % 9]);
    equal(short.committed(), 92);
    ok(short.first() > 0, "it forgets");
    await refuses(() => short.revoke(3), /3 words cannot be taken back: 2 can \(see `undo` of `Model.session`\)/);
    await refuses(() => short.update(["other", "words"]), /are committed already/);
    short.setThreshold(1);
    equal(short.push("play").action, "WRITE");
    short.setSettled(0.5);
    short.free();
    equal(model.tag(SENTENCE, { threshold: 1, finalPass: false }).labels.length, 9);
  },

  async "what a recogniser says of its words is a factor of ours"() {
    const model = await load();
    const [plain, heard] = [model.session(), model.session()];
    for (const word of SENTENCE.slice(0, 3)) {
      const [sure, doubted] = [plain.push(word), heard.push(word, 0.5)];
      const half = Math.fround(0.5 * sure.edits[0].stability);
      equal(Math.fround(doubted.edits[0].stability), half, word);
      equal(doubted.edits[0].label, sure.edits[0].label);
    }
    heard.update(SENTENCE.slice(0, 3), [1, 0.25, 0]);
    equal(heard.stabilities()[2], 0);
    heard.update(SENTENCE.slice(0, 3));
    equal([...heard.stabilities()], [...plain.stabilities()]);
    for (const value of [-0.1, 1.5, NaN]) await refuses(() => heard.push("a", value), /expected 0 to 1/);
    await refuses(() => heard.push("a", "high"), /a stability is a number/, TypeError);
    await refuses(() => heard.update(["a", "b"], [1]), /1 numbers for 2 words/);
    await refuses(() => heard.update(["a"], "high"), /expected a number, or a list/, TypeError);
    equal(heard.words(), 3);
  },

  async "wrong input is an error and harms nothing"() {
    const model = await load();
    const session = model.session();
    session.push("play");
    const wrong = [undefined, null, 42, NaN, {}, ["a"], () => 1, Symbol("a"), 10n, true];
    for (const value of wrong) await refuses(() => session.push(value), /a word is a string/, TypeError);
    for (const value of [undefined, null, 42, {}, 10n]) {
      await refuses(() => session.update(value), /expected a text or an array of words/, TypeError);
      await refuses(() => model.tag(value), /expected a text or an array of words/, TypeError);
    }
    await refuses(() => session.update(["play", 7]), /a word is a string, not 7/, TypeError);
    for (const value of [-1, 0.5, NaN, Infinity, "1", null, {}]) {
      await refuses(() => session.revoke(value), /how many words is/);
      await refuses(() => session.distribution(value), /a position is/);
    }
    await refuses(() => session.revoke(1e9), /1000000000 words cannot be taken back: 1 can/);
    await refuses(() => session.push(""), /empty word/);
    await refuses(() => session.push("a".repeat(1e5)), /a word of 100000 bytes is longer than the limit of 4096/);
    await refuses(() => session.update(["a", "é".repeat(1e5)]), /longer than the limit/);
    await refuses(() => model.tag(Array(10001).fill("a")), /more than the 10000 of the longest sentence/);
    await refuses(() => session.setThreshold(2), /the threshold is 2/);
    await refuses(() => session.setThreshold("0"), /a threshold is a number/, TypeError);
    await refuses(() => session.setSettled(0), /`settled` is 0/);
    await refuses(() => session.spanStability(), /a span/, TypeError);
    await refuses(() => session.spanStability({ label: "x", start: -1, end: 1e99 }), /a span/, TypeError);
    for (const options of [null, 7, "fast", [], () => 1]) {
      await refuses(() => model.session(options), /options are an object/, TypeError);
    }
    await refuses(() => model.session({ treshold: 0.5 }), /unknown field `treshold`/, TypeError);
    await refuses(() => model.session({ threshold: NaN }), /invalid type: null/, TypeError);
    await refuses(() => model.session({ threshold: 7 }), /the threshold is 7/);
    await refuses(() => model.session({ undo: -1 }), /options/, TypeError);
    await refuses(() => model.session({ mode: "fast" }), /unknown variant `fast`/, TypeError);
    await refuses(() => model.session({ undo: 1n }), /BigInt/i, TypeError);
    const circular = {};
    circular.undo = circular;
    await failure(() => model.session(circular));
    await refuses(() => model.session({ get undo() { throw new Error("mine"); } }), /^mine$/);
    model.session({ undo: 2 ** 32 - 1, window: 2 ** 32 - 1 }).free();
    equal([session.words(), session.labels()], [1, ["O"]]);
    // Halves of surrogate pairs are read as U+FFFD, and so is the rest that is odd but a word.
    for (const word of ["\ud83c", "a\udfb7b", "\0", "\u202e", "🎷", "ﬀ", "ß".repeat(100), "'".repeat(4096)]) session.push(word);
    session.update("\ud83c \udfb7 play \u0000 some\u2028jazz");
    equal(session.labels().length, session.words());
    const random = randoms(3);
    for (let i = 0; i < 300; i++) {
      const text = String.fromCharCode(...Array.from({ length: 1 + random(20) }, () => random(65536)));
      session.update(text);
      model.tag(text);
    }
    session.free();
  },

  async "what a getter throws or calls harms nothing"() {
    const model = await Model.load("snips-small");
    const session = model.session();
    session.push("play");
    const mine = () => {
      throw new Error("mine");
    };
    const got = (get) => Object.defineProperty(["play", ""], 1, { get });
    const { proxy: revoked, revoke } = Proxy.revocable([], {});
    revoke();
    for (const words of [got(mine), new Proxy(["play"], { get: mine }), revoked]) {
      await refuses(() => session.update(words), /mine|revoked/);
      await refuses(() => session.update("play", words), /mine|revoked/);
      await refuses(() => model.tag(words), /mine|revoked/);
    }
    await refuses(() => session.push(revoked), /revoked|a word is a string/);
    await refuses(() => model.session(revoked), /revoked/);
    await refuses(() => new Model(revoked), /revoked/);
    await refuses(() => new Model(new Proxy({}, { ownKeys: mine })), /mine/);
    await refuses(() => new Model({ get "config.json"() { return mine(); } }), /mine/);
    await refuses(() => session.update(got(() => session.push("some"))), /it is at work/);
    await refuses(() => session.update(got(() => session.free())), /it is at work/);
    await refuses(() => model.tag(got(() => model.free())), /it is at work/);
    equal(session.update(["play", "some"]).step, 2);
    equal(model.tag("play jazz").labels.length, 2);
    session.free();
    model.free();
  },

  // For the memory of a module never shrinks.
  async "a text that is too long is refused before it takes memory"() {
    const model = await load();
    const [session, stream] = [model.session(), model.stream()];
    const { memory } = await instantiate();
    const before = memory.buffer.byteLength;
    const text = "play jazz ".repeat(5e6);
    const words = Array(2e6).fill("play");
    for (const ask of [
      () => model.tag(text), () => model.words(text), () => session.update(text), () => session.push(text),
      () => stream.answer(text), () => Model.files(text), () => model.tag(words), () => session.update(words),
      () => session.update(Array(20).fill("play ".repeat(2e5))),
    ]) await refuses(ask, /(characters|words) are more than the limit of/);
    equal(memory.buffer.byteLength, before);
    equal(session.words(), 0);
    session.free();
    stream.free();
  },

  async "what was freed is gone, and nothing else"() {
    const model = await Model.load("snips-small");
    const session = model.session();
    const stream = model.stream();
    session.push("play");
    model.free();
    equal(session.push("some").step, 2); // a session holds its model
    for (const object of [session, stream, model]) {
      object.free();
      object.free();
      object[Symbol.dispose]?.();
    }
    for (const ask of [
      () => session.push("jazz"), () => session.labels(), () => stream.answer("{}"), () => model.tag("jazz"),
      () => model.session(),
    ]) await refuses(ask, /it was freed/);
    equal((await load()).tag("play jazz").labels.length, 2);
  },

  async "bad models are refused with the file's name"() {
    await start();
    for (const value of [undefined, null, 42, [], "snips"]) {
      await refuses(() => new Model(value), /expected the files of a model/, TypeError);
    }
    await refuses(() => new Model({}), /config.json: the model has no such file/);
    await refuses(() => new Model({ "config.json": 7 }), /config.json: expected a Uint8Array or a string/, TypeError);
    await refuses(() => new Model({ "config.json": "{" }), /config.json/);
    await refuses(() => new Model({ "config.json": Uint8Array.of(255) }), /config.json: not UTF-8/);
    await refuses(() => Model.files(7), /a configuration is a string/, TypeError);
    await refuses(() => Model.files('{"version": 7}'), /config.json/);
    await refuses(() => Model.load("chess"), /chess: no model of this name is in the package/);
    await refuses(() => Model.load("./no/such/folder"), /no such file/);
  },

  async "messages of the protocol are answered"() {
    const stream = (await load()).stream({ undo: 8 });
    const answer = (message) => JSON.parse(stream.answer(typeof message === "string" ? message : JSON.stringify(message)));
    equal(answer({ push: "What's" }).words, ["what", "s"]);
    equal(answer({ push: "play", session: "a" }).session, "a");
    equal(answer({ revoke: 1 }).step, 0);
    ok(/not a message/.test(answer("{").error), "an error is an answer");
    ok(/expected one/.test(answer({}).error), "an error is an answer");
    await refuses(() => stream.answer(7), /a message is a string/, TypeError);
    stream.free();
  },

  async "the same in a worker"() {
    const model = await TapirWorker.load("snips-small");
    const here = (await load()).session();
    const session = await model.session();
    for (const word of SENTENCE) equal(await session.push(word), here.push(word), word);
    equal(await session.update(SENTENCE.slice(0, 5)), here.update(SENTENCE.slice(0, 5)));
    equal([...(await session.probabilities())], [...here.probabilities()]);
    equal(await session.finish(), here.finish());
    equal(await model.tag("play some jazz"), (await load()).tag("play some jazz"));
    equal((await model.info()).kernels, "simd128");
    equal(await model.words("What's on?"), ["what", "s", "on"]);
    const stream = await model.stream();
    equal(JSON.parse(await stream.answer('{"push": "play"}')).step, 1);
    await refuses(() => session.push("more"), /session is finished/);
    await refuses(() => session.push(7), /a word is a string/, TypeError);
    await refuses(() => model.session({ undo: "x" }), /options/, TypeError);
    await failure(() => session.push(() => 1)); // cannot be sent
    await session.reset();
    const answers = await Promise.all(SENTENCE.map((word) => session.push(word))); // asked all at once
    equal(answers.map(({ step }) => step), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await session.free();
    await session.free(); // once more
    await refuses(() => session.push("more"), /it was freed/);
    const waiting = refuses(() => model.tag("play jazz"), /the worker was ended/);
    model.terminate();
    await waiting;
    await refuses(() => model.tag("play jazz"), /the worker was ended/);
    await refuses(() => TapirWorker.load("chess"), /no model of this name/);
    here.free();
  },

  async "a trap in a worker ends it, with an error for all that wait"() {
    const model = await TapirWorker.load("snips-small");
    const asked = [model.tag("play jazz"), model.info()];
    const refused = asked.map((answer) => refuses(() => answer, /the worker has ended: unreachable/));
    const { worker } = model.line;
    const data = { id: -1, error: { name: "RuntimeError", message: "unreachable", isFatal: true } };
    if (worker.emit) worker.emit("message", data); // in Node
    else worker.dispatchEvent(new MessageEvent("message", { data }));
    await Promise.all(refused);
    await refuses(() => model.info(), /the worker has ended: unreachable/);
  },

  async "an answer of a worker that cannot be read is an error for all that wait"() {
    const model = await TapirWorker.load("snips-small");
    const asked = [model.tag("play jazz"), model.info()];
    const refused = asked.map((answer) => refuses(() => answer, /an answer of it cannot be read/));
    const { worker } = model.line;
    if (worker.emit) worker.emit("messageerror", new Error()); // in Node
    else worker.dispatchEvent(new MessageEvent("messageerror"));
    await Promise.all(refused);
  },
};
