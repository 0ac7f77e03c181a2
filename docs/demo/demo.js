// Made by `cargo xtask web demo` from npm/demo and crates/tapir-serve/page.
"use strict";
const WORKER = "// The worker of the demonstration, behind the script that loads the module: the model, and what\n// `tapir serve` would answer.\n\nlet model;\nconst streams = new Map();\n\nconst actions = {\n  async load({ wasm, files }) {\n    await tapirModule({ module_or_path: wasm });\n    model = new tapirModule.Model(files);\n    return model.info();\n  },\n  words: ({ text }) => model.words(text),\n  open: ({ stream, options }) => void streams.set(stream, model.stream(options)),\n  answer: ({ stream, message }) => streams.get(stream).answer(message),\n  close({ stream }) {\n    streams.get(stream)?.free();\n    streams.delete(stream);\n  },\n};\n\nlet last = Promise.resolve();\nself.onmessage = ({ data: { id, action, ...given } }) => {\n  last = last.then(() => actions[action](given)).then(\n    (value) => self.postMessage({ id, value }),\n    (error) => {\n      // After a trap what was at work in the module stays so: the page ends this worker.\n      const isFatal = error instanceof WebAssembly.RuntimeError;\n      self.postMessage({ id, error: String(error?.message ?? error), isFatal });\n    },\n  );\n};\n";
// In the place of `tapir serve`: what its page asks over the network is answered by a worker of this
// page. The page's own script is then used as it is, with these `fetch` and `WebSocket`.

const local = (() => {
  const NAME = "snips-small";

  /** What was packed into a script. */
  async function unpack(base64) {
    const packed = await (await fetch(`data:application/octet-stream;base64,${base64}`)).blob();
    const stream = packed.stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  const waiting = new Map();
  let next = 0;
  let worker;
  let failure; // why the worker answers no more

  function ask(action, given = {}) {
    if (failure) return Promise.reject(failure);
    const id = next++;
    worker.postMessage({ id, action, ...given });
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }

  function failed({ message = "it cannot be started or understood" }) {
    failure = new Error(`the worker of this page has failed: ${message}`);
    for (const { reject } of waiting.values()) reject(failure);
    waiting.clear();
    worker.terminate();
    worker.onmessage = null;
  }

  /** A page that was opened from a disk may start a worker of a text, but of no file. */
  async function start() {
    const script = new Blob([TAPIR_MODULE.glue, WORKER], { type: "text/javascript" });
    worker = new Worker(URL.createObjectURL(script));
    worker.onmessage = ({ data: { id, value, error, isFatal } }) => {
      if (isFatal) return failed({ message: error });
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      if (error) reject(new Error(error));
      else resolve(value);
    };
    for (const kind of ["error", "messageerror"]) worker.addEventListener(kind, failed);
    const unpacked = async ([name, text]) => [name, await unpack(text)];
    const [wasm, files] = await Promise.all([unpack(TAPIR_MODULE.wasm), Promise.all(Object.entries(TAPIR_MODEL).map(unpacked))]);
    // Megabytes of text that nobody reads again.
    for (const packed of [TAPIR_MODULE, TAPIR_MODEL]) for (const name of Object.keys(packed)) delete packed[name];
    const { maxLength, ...info } = await ask("load", { wasm, files: Object.fromEntries(files) });
    return { ...info, name: NAME, default: true, max_length: maxLength };
  }

  const started = start();

  /** The answers of the server's HTTP interface. */
  async function fetchLocal(path, { body } = {}) {
    try {
      const model = await started;
      if (path === "v1/models") return Response.json({ models: [model] });
      if (path === "v1/tokenize") return Response.json({ words: await ask("words", JSON.parse(body)) });
      return Response.json({ error: `${path}: there is no such path` }, { status: 404 });
    } catch (error) {
      return Response.json({ error: error.message }, { status: 500 });
    }
  }

  /** Its WebSocket. */
  class LocalSocket {
    static OPEN = 1;
    static CLOSING = 2;
    static CLOSED = 3;

    constructor(url) {
      this.readyState = 0;
      this.stream = next++;
      const threshold = Number(new URL(url).searchParams.get("threshold"));
      this.#run(ask("open", { stream: this.stream, options: { threshold } }), () => {
        this.readyState = LocalSocket.OPEN;
        this.onopen?.();
      });
    }

    send(message) {
      this.#run(ask("answer", { stream: this.stream, message }), (data) => this.onmessage?.({ data }));
    }

    close() {
      this.readyState = LocalSocket.CLOSED;
      ask("close", { stream: this.stream }).catch(() => undefined); // with the worker the stream is gone, too
    }

    #run(promise, then) {
      promise.then(then, ({ message }) => {
        this.readyState = LocalSocket.CLOSED;
        this.onclose?.({ code: 1011, reason: message });
      });
    }
  }

  return { fetch: fetchLocal, WebSocket: LocalSocket };
})();

(({ fetch, WebSocket }) => {
// The live page of `tapir serve`: text in, labels out, word by word.
//
// What the user wants read is `wanted`; `sync` sends the messages that bring the server's session there. What is shown is
// an `Utterance`, which only answers change. So typing, playing, running again and reconnecting are all the same thing.

/** From which probability on a label counts as settled. */
const SETTLED = 0.95;

const ids = ["again", "announcer", "chart", "connection", "empty", "error", "examples", "figures", "finish", "intent", "model",
  "play", "reconnect", "reset", "spans", "speed", "spoken", "steps", "table", "text", "threshold", "threshold-value", "token",
  "token-form", "words"];
const ui = Object.fromEntries(ids.map((id) => [id, document.getElementById(id)]));

// Longer hypotheses are caught up with in one message; the rest comes word by word, so that every step is seen.
const STEPWISE = 200;
const IN_FLIGHT = 8;
const DEBOUNCE = 40;

// Offered where the model knows the label.
const EXAMPLES = [
  ["B-track", "Play On My Own by Les Mis on Spotify"],
  ["B-rating_value", "Rate The Old Man and the Sea four out of six"],
  ["B-restaurant_type", "Reserve a table for six people at an Italian bistro in Bath tomorrow evening"],
  ["B-condition_description", "Is it going to snow in Buffalo the day after tomorrow?"],
  ["NOUN", "Time flies like an arrow; fruit flies like a banana."],
  ["NOUN", "Back up the back door before you back out."],
  ["NOUN", "The florist sent the flowers was pleased."],
];

// ---------------------------------------------------------------- small helpers

function el(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
const times = (n) => (n === 1 ? "once" : n === 2 ? "twice" : `${n} times`);

/** Runs `action` once calls have stopped for `ms`. */
function settled(ms, action) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, ms);
  };
}

/** How many leading words two hypotheses share. */
function shared(a, b) {
  const end = a.findIndex((word, i) => word !== b[i]);
  return end < 0 ? a.length : end;
}

// ---------------------------------------------------------------- labels

/** `B-city` into `B` and `city`; labels that are no part of a span have no tag. */
function parts(label) {
  const found = model?.scheme !== "plain" && /^([BIES])-(.+)$/.exec(label);
  return found ? { tag: found[1], type: found[2] } : { tag: "", type: label };
}

/** Does a label go on with the span of the one before it? */
function continues(label, before) {
  if (!label || !before) return false;
  const [now, last] = [parts(label), parts(before)];
  return "IE".includes(now.tag) && "BI".includes(last.tag) && now.tag !== "" && last.tag !== "" && now.type === last.type;
}

/** Hues of the model's label types, as far apart as can be for their number: steps of the golden angle. */
function huesOf(labels) {
  const types = [...new Set(labels.filter((label) => label !== "O").map((label) => parts(label).type))];
  return new Map(types.map((type, i) => [type, Math.round((250 + i * 137.508) % 360)]));
}

// ---------------------------------------------------------------- what the answers say

/** Words with their labels, and the steps that gave them. */
class Utterance {
  constructor(threshold) {
    this.threshold = threshold;
    this.clear();
  }

  clear() {
    this.words = [];
    this.steps = []; // by words read; those that were not seen are missing
    this.end = undefined;
    this.spans = undefined;
    this.intent = undefined;
    this.sureIntent = undefined; // the intent that was said to be settled
    this.committed = 0;
  }

  get texts() {
    return this.words.map((word) => word.text);
  }
  get revisions() {
    return [...this.steps, this.end].filter((step) => step?.action === "REVISE").length;
  }
  get edits() {
    return this.words.reduce((sum, word) => sum + word.history.length, 0);
  }

  /** Takes the answer to a message; returns the labels that were changed. */
  apply(request, answer) {
    if (request.reset) this.clear();
    if (request.threshold !== undefined) this.threshold = request.threshold;
    if (request.update) this.take(request.update);
    if (answer.edits === undefined) return [];
    this.committed = answer.committed;
    this.intent = answer.intent;
    for (const word of this.words.slice(answer.length)) word.label = undefined;
    const changes = answer.edits.map((edit) => this.edit(edit)).filter(Boolean);
    const open = answer.provisional ? answer.edits.map((edit) => edit.position) : [];
    this.words.forEach((word, i) => (word.settled = !open.includes(i)));
    for (const position of answer.settled?.words ?? []) if (this.words[position]) this.words[position].sure = true;
    if (answer.settled?.intent) this.sureIntent = answer.intent?.label;
    this.note(request, answer);
    return changes;
  }

  /** A new hypothesis. A label belongs to its position until it is edited; whether it was changed belongs to the word. */
  take(texts) {
    const kept = shared(this.texts, texts);
    const fresh = (text, old) => ({ text, label: old?.label, probability: old?.probability, history: [], settled: false });
    this.words = texts.map((text, i) => (i < kept ? this.words[i] : fresh(text, this.words[i])));
    this.steps.length = Math.min(this.steps.length, texts.length);
  }

  edit({ position, label, probability }) {
    const word = this.words[position];
    if (!word) return undefined;
    const old = word.label;
    Object.assign(word, { label, probability, sure: false });
    if (old === label || old === undefined || !word.settled) return undefined;
    word.history.push(old);
    return { position, label, old };
  }

  note(request, { step, action, policy, provisional, spans }) {
    if (request.finish) {
      this.spans = spans;
      this.end = action && { action, policy, threshold: this.threshold, name: "end", word: "(end)" };
    } else if (action || provisional) {
      const word = this.words[step - 1]?.text ?? "";
      this.steps[step - 1] = { action, policy, threshold: this.threshold, name: step, word };
    }
  }
}

// ---------------------------------------------------------------- the server

let token = ""; // in memory only

async function api(path, body) {
  const headers = body ? { "content-type": "application/json" } : {};
  if (token) headers.authorization = `Bearer ${token}`;
  const options = body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers };
  const response = await fetch(path, options).catch(() => {
    throw new Error("the server cannot be reached");
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw Object.assign(new Error(answer.error ?? `the server answered ${response.status}`), { status: response.status });
  }
  return answer;
}

/** One WebSocket: messages are answered in order, some by a provisional answer first. */
class Stream {
  constructor(url, protocols, { opened, answered, closed }) {
    this.waiting = [];
    this.answered = answered;
    this.socket = new WebSocket(url, protocols);
    this.socket.onopen = opened;
    this.socket.onmessage = ({ data }) => this.receive(JSON.parse(data));
    this.socket.onclose = closed;
  }

  get open() {
    return this.socket.readyState === WebSocket.OPEN;
  }
  get ended() {
    return this.socket.readyState >= WebSocket.CLOSING;
  }

  send(message) {
    this.waiting.push({ message, sent: performance.now() });
    this.socket.send(JSON.stringify(message));
  }

  receive(answer) {
    const now = performance.now();
    const { message, sent } = this.waiting[0] ?? { message: {}, sent: now };
    if (!answer.provisional) this.waiting.shift();
    this.answered(message, answer, now - sent);
  }

  close() {
    this.socket.onopen = this.socket.onmessage = this.socket.onclose = null;
    this.socket.close();
  }
}

// ---------------------------------------------------------------- what is wanted, and getting there

let models = [];
let model;
let hues = new Map();
let stream;
let utterance = new Utterance(0.5);
let wanted = { words: [], finished: false };
let sent = { words: [], finished: false };
let latency;

function want(words, finished = false) {
  wanted = { words, finished };
  if (!stream || stream.ended) connect();
  else sync();
}

/** Sends what brings the session to what is wanted, a few messages ahead of the answers: newer wishes need not wait long. */
function sync() {
  while (stream?.open && stream.waiting.length < IN_FLIGHT) {
    const message = next();
    if (!message) return;
    stream.send(message);
  }
}

/** The next message on the way from what was sent to what is wanted. */
function next() {
  const { words, finished } = wanted;
  const kept = shared(sent.words, words);
  const takesBack = kept < sent.words.length;
  if (takesBack || kept < words.length) {
    // Neither a finished session nor committed words can be changed.
    if (sent.finished || (takesBack && utterance.committed > 0)) {
      sent = { words: [], finished: false };
      return { reset: true };
    }
    const length = Math.max(kept + 1, words.length - STEPWISE);
    sent.words = words.slice(0, length);
    return { update: sent.words };
  }
  if (finished && !sent.finished && words.length > 0) {
    sent.finished = true;
    return { finish: true };
  }
  return undefined;
}

/** Makes the server forget what was sent; `sync` then sends it anew, with the threshold that is shown. */
function restart() {
  if (stream?.open) {
    stream.send({ threshold: Number(ui.threshold.value) });
    stream.send({ reset: true });
  }
  sent = { words: [], finished: false };
}

function connect() {
  stream?.close();
  setConnection("connecting");
  const url = new URL("v1/stream", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  url.search = new URLSearchParams({ model: model.name, threshold: ui.threshold.value });
  const protocols = token ? ["tapir.v1", `bearer.${token}`] : ["tapir.v1"];
  stream = new Stream(url.href, protocols, { opened, answered, closed });
}

function opened() {
  setConnection("connected");
  utterance = new Utterance(Number(ui.threshold.value));
  sent = { words: [], finished: false };
  if (model.calibrated) stream.send({ settled: SETTLED });
  sync();
  draw();
}

function answered(request, answer, ms) {
  showError(answer.error);
  if (answer.error) {
    sent = { words: utterance.texts, finished: utterance.spans !== undefined };
    return;
  }
  if (answer.edits) latency = ms;
  const changes = utterance.apply(request, answer);
  announce(changes);
  draw(changes);
  sync();
}

function closed({ code, reason }) {
  player.pause();
  setConnection("disconnected", reason || (code === 1006 ? "the server is away or refused" : `code ${code}`));
}

function setConnection(state, reason) {
  ui.connection.dataset.state = state;
  ui.connection.textContent = reason ? `${state}: ${reason}` : state;
  ui.reconnect.hidden = state !== "disconnected";
}

function showError(message = "") {
  ui.error.hidden = !message;
  if (ui.error.textContent !== message) ui.error.textContent = message;
}

// ---------------------------------------------------------------- reading the text box

let turn = 0;
let known = {}; // the text that was split last

/** The text without a word that is still being typed. */
function completeText(text, caret) {
  const start = text.search(/\S*$/);
  const complete = caret < start || /[.,;:!?)\]}"”…]$/.test(text);
  return complete ? text : text.slice(0, start);
}

/** The text's words as the model wants them; undefined if something newer was asked meanwhile. */
async function tokenize(text, wait = 0) {
  const mine = ++turn;
  await pause(wait);
  if (mine !== turn) return undefined;
  if (!text.trim()) return [];
  if (known.text === text && known.model === model) return known.words;
  try {
    const { words } = await api("v1/tokenize", { model: model.name, text });
    if (mine !== turn) return undefined;
    known = { text, model, words };
    return words;
  } catch (error) {
    if (mine === turn) failed(error);
    return undefined;
  }
}

async function read({ whole = false, finished = false, wait = 0 } = {}) {
  const { value, selectionEnd } = ui.text;
  if (!finished) wanted.finished = false;
  const words = await tokenize(whole ? value : completeText(value, selectionEnd), wait);
  if (words) want(words, finished);
}

function newUtterance() {
  player.stop();
  turn++;
  ui.text.value = "";
  wanted = { words: [], finished: false };
  restart();
  if (stream?.ended) connect();
  ui.text.focus();
}

function runAgain() {
  player.stop();
  restart();
  want(wanted.words, wanted.finished);
}

// ---------------------------------------------------------------- playing

const player = {
  state: "stopped",
  words: [],
  at: 0,
  timer: 0,

  async start(text) {
    this.stop();
    const words = await tokenize(text);
    if (!words?.length) return;
    this.words = words;
    this.at = 0;
    wanted = { words: [], finished: false };
    restart();
    this.resume();
  },
  resume() {
    this.set("playing");
    this.next();
  },
  pause() {
    if (this.state !== "playing") return;
    clearTimeout(this.timer);
    this.set("paused");
  },
  stop() {
    clearTimeout(this.timer);
    this.set("stopped");
  },
  next() {
    const over = this.at === this.words.length;
    if (!over) this.at++;
    want(this.words.slice(0, this.at), over);
    if (over) this.stop();
    else this.timer = setTimeout(() => this.next(), Number(ui.speed.value));
  },
  set(state) {
    this.state = state;
    ui.play.textContent = { stopped: "Play", playing: "Pause", paused: "Resume" }[state];
  },
};

function playOrPause() {
  if (player.state === "playing") return player.pause();
  if (player.state === "paused") return player.resume();
  if (!ui.text.value.trim()) ui.text.value = examples()[0] ?? "";
  return player.start(ui.text.value);
}

const examples = () => EXAMPLES.filter(([label]) => model.labels.includes(label)).map(([, text]) => text);

function offerExamples() {
  const button = (text) => {
    const play = () => {
      ui.text.value = text;
      player.start(text);
    };
    return el("button", { type: "button", textContent: text, onclick: play });
  };
  ui.examples.replaceChildren(...examples().map(button));
  ui.examples.hidden = examples().length === 0;
}

// ---------------------------------------------------------------- showing words

const changed = new Set();
let drawing = false;

/** Draws at the next frame, however many answers come before it. */
function draw(changes = []) {
  for (const { position } of changes) changed.add(position);
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    drawWords();
    drawFound();
    drawChart();
    drawTable();
    drawStatus();
    changed.clear();
  });
}

function drawWords() {
  const { words } = utterance;
  const items = ui.words.children;
  while (items.length > words.length) ui.words.lastChild.remove();
  while (items.length < words.length) ui.words.append(el("li"));
  words.forEach((word, i) => {
    drawWord(items[i], word, words[i - 1], words[i + 1]);
    if (changed.has(i)) flash(items[i]);
  });
  ui.empty.hidden = words.length > 0;
}

function drawWord(item, word, before, after) {
  const { text, label = "", probability, history, settled, sure } = word;
  const joins = continues(label, before?.label);
  const joined = continues(after?.label, label);
  const key = JSON.stringify([word, joins, joined]);
  if (item.drawn === key) return;
  item.drawn = key;

  const { tag, type } = parts(label);
  const hue = hues.get(type);
  const classes = { coloured: hue !== undefined, continues: joins, continued: joined, provisional: label && !settled, sure };
  item.className = ["word", ...Object.keys(classes).filter((name) => classes[name])].join(" ");
  item.dataset.label = label;
  item.dataset.edits = history.length;
  item.style.setProperty("--hue", hue ?? 0);
  item.style.setProperty("--probability", probability ?? 0);
  const notes = notesOn(word);
  item.title = [label, ...notes].join("\n");
  item.replaceChildren(
    el("span", { className: "text", textContent: text }),
    el("span", { className: "label" }, el("span", { className: "tag", textContent: tag && `${tag}-` }),
      el("span", { className: "type", textContent: type || "…" })),
    el("span", { className: "unseen", textContent: notes.map((note) => `, ${note}`).join("") }),
  );
  if (history.length) item.append(markOf(history.length));
}

function markOf(edits) {
  const mark = el("span", { className: "mark", textContent: `×${edits}` });
  mark.setAttribute("aria-hidden", "true");
  return mark;
}

function notesOn({ label, probability, history, settled, sure }) {
  if (!label) return ["no label yet"];
  const notes = [`probability ${probability.toFixed(2)}`];
  if (!settled) notes.push("provisional");
  if (sure) notes.push("settled");
  if (history.length) notes.push(`revised ${times(history.length)}, was ${history.join(", then ")}`);
  return notes;
}

const still = matchMedia("(prefers-reduced-motion: reduce)");

function flash(item) {
  if (still.matches) return;
  const colour = getComputedStyle(item).getPropertyValue("--orange");
  item.animate([{ boxShadow: `0 0 0 4px ${colour}` }, { boxShadow: "0 0 0 0 transparent" }], { duration: 900, easing: "ease-out" });
}

/** What the utterance is about; after the end what was found, unless every word is a span of its own. */
function drawFound() {
  const { intent } = utterance;
  ui.intent.hidden = !intent;
  if (intent) {
    const notes = [`${(100 * intent.probability).toFixed(0)} %`];
    if (intent.label === utterance.sureIntent) notes.push("settled");
    if (intent.in_domain < 0.5) notes.push("but this is probably not for this model");
    ui.intent.replaceChildren("Intent ", el("b", { textContent: intent.label }), ` ${notes.join(", ")}`);
  }
  const spans = model.scheme === "plain" ? [] : (utterance.spans ?? []);
  ui.spans.hidden = spans.length === 0;
  ui.spans.replaceChildren(...spans.map(({ label, start, end }) => {
    const name = el("b", { textContent: label });
    name.style.setProperty("--hue", hues.get(label) ?? 0);
    return el("li", {}, name, utterance.texts.slice(start, end).join(" "));
  }));
}

// ---------------------------------------------------------------- showing steps

/** The steps that were seen, the end included. */
function steps() {
  return [...utterance.steps.slice(-STEPWISE), utterance.end].filter(Boolean);
}

function drawChart() {
  const all = steps();
  const { clientWidth: width, clientHeight: height } = ui.chart;
  const [left, right, top] = [28, 48, 10];
  const column = Math.min(64, (width - left - right) / Math.max(all.length, 1));
  const slanted = column >= 12 && all.some(({ word }) => word.length * 6.8 > column);
  const bottom = slanted ? 66 : 24;
  const x = (i) => left + column * i;
  const y = (value) => top + (1 - value) * (height - top - bottom);
  const area = { left, right, width, column, slanted, x, y };
  ui.chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  ui.chart.setAttribute("aria-label", chartText(all));
  ui.chart.replaceChildren(
    ...[0, 0.5, 1].flatMap((value) => gridLine(value, area)),
    ...all.map((step, i) => drawStep(step, i, area)),
    ...drawThreshold(all, area),
  );
}

function gridLine(value, { left, right, width, y }) {
  return [
    svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
    svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, String(value)),
  ];
}

function drawStep(step, i, area) {
  const { column, x, y } = area;
  const { policy, action } = step;
  const [middle, height] = [x(i + 0.5), y(policy ?? 1)];
  const kind = `stem${action === "REVISE" ? " revised" : ""}${policy === undefined ? " unasked" : ""}`;
  return svg("g", {},
    svg("title", {}, stepText(step)),
    svg("line", { class: kind, x1: middle, x2: middle, y1: y(0), y2: height }),
    mark(action, middle, height, Math.min(1, column / 12)),
    stepName(step, middle, area),
  );
}

/** The word if there is room for it, else every tenth step's number. */
function stepName({ name, word, action }, x, { column, slanted, y }) {
  const place = slanted
    ? { "text-anchor": "end", transform: `translate(${x + 4} ${y(0) + 14}) rotate(-45)` }
    : { "text-anchor": "middle", transform: `translate(${x} ${y(0) + 16})` };
  const number = name === "end" || name % 10 === 0 ? String(name) : "";
  return svg("text", { class: action === "REVISE" ? "revised" : "", ...place }, column < 12 ? number : shorten(word, 11));
}

function mark(action, x, y, scale) {
  if (action === "WRITE") return svg("circle", { class: "write", cx: x, cy: y, r: 3.5 * scale });
  const r = 5.5 * scale;
  return svg("path", { class: action ? "revise" : "revise coming", d: `M${x} ${y - r}l${r} ${r}l${-r} ${r}l${-r} ${-r}z` });
}

/** Each step keeps the threshold it was read with; the last stretch is the one that the next word will have. */
function drawThreshold(all, { left, right, width, x, y }) {
  const next = Number(ui.threshold.value);
  const past = all.map(({ threshold }, i) => `V${y(threshold)}H${x(i + 1)}`).join("");
  const from = y(all[0]?.threshold ?? next);
  return [
    svg("path", { class: "threshold", d: `M${left} ${from}${past}V${y(next)}H${width - right}` }),
    svg("text", { class: "tau", x: width - right + 6, y: y(next) + 4 }, `τ ${next.toFixed(2)}`),
  ];
}

const shorten = (text, room) => (text.length > room ? `${text.slice(0, room - 1)}…` : text);
const policyText = (policy) => policy?.toFixed(3) ?? "–";

function stepText({ name, word, policy, action }) {
  if (policy === undefined) return "A last revision, at the end";
  return `${name}. ${word}: policy ${policyText(policy)}, ${action ?? "revising"}`;
}

function chartText(all) {
  if (all.length === 0) return "Policy value at each step: no steps yet";
  const revised = all.filter(({ action }) => action === "REVISE").map(({ word, policy }) => `${word} ${policy?.toFixed(2) ?? ""}`.trim());
  return `Policy value at ${count(all.length, "step")}; ${revised.length} revised${revised.length ? `: ${revised.join(", ")}` : ""}`;
}

function drawTable() {
  if (!ui.table.open) return;
  const row = ({ name, word, policy, threshold, action }) =>
    el("tr", {}, ...[name, word, policyText(policy), threshold.toFixed(2), action ?? "…"].map((text) => el("td", { textContent: text })));
  ui.steps.replaceChildren(...steps().map(row));
}

// ---------------------------------------------------------------- status, said briefly

const speakStatus = settled(900, () => (ui.spoken.textContent = ui.figures.textContent));

function drawStatus() {
  const { words, revisions, edits } = utterance;
  const figures = [count(words.length, "word"), count(revisions, "revision"), count(edits, "edit")];
  if (latency !== undefined) figures.push(`last answer ${latency.toFixed(1)} ms`);
  ui.figures.textContent = figures.join(" · ");
  speakStatus();
}

let unsaid = [];
const speakChanges = settled(300, () => {
  const said = unsaid.map(({ position, label, old }) => `word ${position + 1} is now ${label}, was ${old}`);
  ui.announcer.textContent = said.length > 3 ? `${said.length} labels changed` : said.join("; ");
  unsaid = [];
});

function announce(changes) {
  unsaid.push(...changes);
  if (changes.length) speakChanges();
}

// ---------------------------------------------------------------- start

function failed(error) {
  if (error.status === 401) askForToken();
  else showError(error.message);
}

function askForToken() {
  showError(token && "The server did not accept this token.");
  setConnection("disconnected", "a token is needed");
  ui.reconnect.hidden = true;
  ui["token-form"].hidden = false;
  ui.token.focus();
}

function choose(name) {
  player.stop();
  model = models.find((candidate) => candidate.name === name);
  hues = huesOf(model.labels);
  setThreshold(model.threshold);
  offerExamples();
}

function setThreshold(value) {
  ui.threshold.value = value;
  ui["threshold-value"].textContent = Number(value).toFixed(2);
}

const sendThreshold = settled(80, () => {
  if (stream?.open) stream.send({ threshold: Number(ui.threshold.value) });
});

async function start() {
  setConnection("connecting");
  try {
    ({ models } = await api("v1/models"));
  } catch (error) {
    setConnection("disconnected", error.message);
    failed(error);
    return;
  }
  showError();
  ui["token-form"].hidden = true;
  ui.model.replaceChildren(...models.map(({ name }) => el("option", { value: name, textContent: name })));
  ui.model.value = (models.find((candidate) => candidate.default) ?? models[0]).name;
  ui.model.disabled = false;
  choose(ui.model.value);
  connect();
  draw();
  read({ whole: true });
}

ui.text.addEventListener("input", ({ isComposing, inputType = "" }) => {
  if (isComposing || !model) return;
  player.stop();
  read({ whole: /^insertFrom(Paste|Drop)/.test(inputType), wait: DEBOUNCE });
});
ui.text.addEventListener("compositionend", () => read({ wait: DEBOUNCE }));
ui.text.addEventListener("change", () => {
  if (model && player.state === "stopped") read({ whole: true, finished: wanted.finished });
});
ui.text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  ui.finish.click();
});
ui.finish.addEventListener("click", () => {
  player.stop();
  if (model) read({ whole: true, finished: true });
});
ui.play.addEventListener("click", () => model && playOrPause());
ui.reset.addEventListener("click", () => model && newUtterance());
ui.again.addEventListener("click", () => model && runAgain());
ui.reconnect.addEventListener("click", () => (model ? connect() : start()));
ui.model.addEventListener("change", () => {
  choose(ui.model.value);
  connect();
  wanted = { words: [], finished: wanted.finished };
  read({ whole: true, finished: wanted.finished });
});
ui.threshold.addEventListener("input", () => {
  setThreshold(ui.threshold.value);
  sendThreshold();
  draw();
});
ui.table.addEventListener("toggle", drawTable);
ui["token-form"].addEventListener("submit", (event) => {
  event.preventDefault();
  token = ui.token.value.trim();
  start();
});
new ResizeObserver(() => model && draw()).observe(ui.chart);

start();
})(local);

// What the browser's own speech recognition hears, where it has one: each hypothesis takes the place
// of the one before, and words that it takes back are undone.

{
  const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;
  const button = document.getElementById("listen");
  const hint = document.getElementById("listen-hint");
  const text = document.getElementById("text");
  const error = document.getElementById("error");

  if (Recognition) {
    button.hidden = hint.hidden = false;
    let recognition;
    let isHeard = false; // does the text change by what is heard?

    const listening = (now) => {
      recognition = now;
      button.textContent = now ? "Stop" : "Listen";
    };
    const complain = (what) => {
      error.textContent = `The browser's speech recognition says: ${what}`;
      error.hidden = false;
    };
    const hear = ({ results }) => {
      text.value = [...results].map(([best]) => best.transcript.trim()).join(" ");
      isHeard = true;
      text.dispatchEvent(new InputEvent("input", { inputType: "insertFromPaste" }));
      isHeard = false;
    };
    const listen = () => {
      const fresh = new Recognition();
      Object.assign(fresh, { lang: "en-US", continuous: true, interimResults: true });
      fresh.onresult = hear;
      fresh.onerror = (event) => complain(event.error);
      fresh.onend = () => {
        listening(undefined);
        if (text.value.trim()) document.getElementById("finish").click();
      };
      try {
        fresh.start();
      } catch (thrown) {
        complain(thrown.message);
        return;
      }
      document.getElementById("reset").click();
      listening(fresh);
    };
    /**
     * Stops at once. Each result has all that was heard since the start: it would overwrite what is
     * typed, bring back what was cleared, and begin anew what was finished.
     */
    const drop = () => {
      if (!recognition) return;
      recognition.onresult = recognition.onerror = recognition.onend = null;
      recognition.abort();
      listening(undefined);
    };
    button.addEventListener("click", () => (recognition ? recognition.stop() : listen()));
    document.addEventListener("click", ({ target }) => {
      if (target.closest("#finish, #reset, #play, #examples button")) drop();
    });
    text.addEventListener("input", () => {
      if (!isHeard) drop();
    });
  }
}
