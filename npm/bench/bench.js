// `cargo xtask web bench`: sizes, words a second on one core against the native library, and the
// time to the first label. All take turns, and ratios are taken within a turn, so that what else the
// machine does weighs on all of them.

import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { BROWSERS } from "../test/browser.js";
import { serve } from "../test/server.js";

const PACKAGE = new URL("../", import.meta.url);
const SENTENCES = fileURLToPath(new URL("../crates/tapir-models/data/snips/test/seq.in", PACKAGE));
const TURNS = Number(process.env.TAPIR_TURNS ?? 5);
const SECONDS = Number(process.env.TAPIR_SECONDS ?? 2);

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const row = (...cells) => console.log(`| ${cells.join(" | ")} |`);

// ---------------------------------------------------------------- sizes

const gzipped = (...paths) => {
  const bytes = paths.map((path) => gzipSync(readFileSync(new URL(path, PACKAGE)), { level: 9 }).length);
  return `${(bytes.reduce((a, b) => a + b) / 1e6).toFixed(2)} MB`;
};
const files = (folder) => readdirSync(new URL(folder, PACKAGE)).map((name) => `${folder}/${name}`);
const module = ["wasm/tapir_wasm.js", "wasm/tapir_wasm_bg.wasm"];
const vectors = "models/en_300d.tapirvec";

console.log(`${new Date().toISOString()}, ${cpus()[0].model}, load ${loadavg().map((load) => load.toFixed(2)).join(" ")}\n`);
row("gzipped", "");
row("---", "---");
row("module and its script", gzipped(...module));
row("with `snips-small`, without word vectors", gzipped(...module, ...files("models/snips-small")));
row("with `snips-small` and all word vectors", gzipped(...module, ...files("models/snips-small"), vectors));

// ---------------------------------------------------------------- speed

/** A process that prints a line at its first label, and another at its end. */
async function measure(program, args, env = {}) {
  const since = performance.now();
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } });
  const lines = [];
  let first;
  for await (const line of createInterface({ input: child.stdout })) {
    first ??= performance.now() - since;
    lines.push(line);
  }
  return { first, ...JSON.parse(lines.at(-1)) };
}

// Against the best kernels of the machine, and against those that nearly every x86 has: a processor
// with AVX-512 would have the same browser look slower.
const AVX2 = "native, AVX2";
const BASES = process.arch === "x64" ? ["native", AVX2] : ["native"];

const PAGE = `<!doctype html><meta charset="utf-8"><script type="module">
  import { Model } from "/node_modules/tapir-nlp/index.js";
  import { wordsPerSecond } from "/node_modules/tapir-nlp/bench/words.js";
  const params = new URLSearchParams(location.search);
  globalThis.measured = (async () => {
    const model = await Model.load(params.get("model"));
    model.session().push("play");
    const first = performance.now();
    const text = await (await fetch("/sentences")).text();
    const sentences = text.split("\\n").filter(Boolean).map((line) => line.split(" ").filter(Boolean));
    return { first, rate: wordsPerSecond(model, sentences, Number(params.get("seconds"))), kernels: model.info().kernels };
  })();
</script>`;

const server = await serve({ "/": PAGE, "/sentences": readFileSync(SENTENCES) });
const browsers = {};
for (const [name, kind] of Object.entries(BROWSERS)) {
  try {
    browsers[name] = await kind.open();
  } catch (error) {
    console.log(`\n${name} is not here: ${error.message.slice(0, 100)}`);
  }
}

for (const model of ["snips-small", "pos"]) {
  const native = (env) => measure(process.env.TAPIR_NATIVE, [model, SENTENCES, SECONDS], env);
  const systems = {
    native: () => native(),
    ...(BASES.includes(AVX2) && { [AVX2]: () => native({ TAPIR_KERNELS: "avx2" }) }),
    Node: () => measure(process.execPath, [fileURLToPath(new URL("bench/node.js", PACKAGE)), model, SENTENCES, SECONDS]),
  };
  for (const [name, browser] of Object.entries(browsers)) {
    systems[name] = async () => {
      await browser.go(`${server.url}/?model=${model}&seconds=${SECONDS}`);
      return browser.evaluate("measured");
    };
  }
  const turns = [];
  for (let turn = 0; turn < TURNS; turn++) {
    const results = {};
    for (const [name, run] of Object.entries(systems)) results[name] = await run();
    turns.push(results);
  }
  console.log(`\n\`${model}\` on the SNIPS test sentences, int8, one core, medians of ${TURNS} turns of ${SECONDS} s:\n`);
  row("", "kernels", "words a second", ...BASES.map((base) => `against ${base}`), "start to first label");
  row("---", "---", "---", ...BASES.map(() => "---"), "---");
  for (const name of Object.keys(systems)) {
    const of = (value) => median(turns.map(value));
    const rate = Math.round(of((turn) => turn[name].rate)).toLocaleString("en");
    const ratios = BASES.map((base) => of((turn) => turn[name].rate / turn[base].rate).toFixed(2));
    row(name, turns[0][name].kernels, rate, ...ratios, `${of((turn) => turn[name].first).toFixed(0)} ms`);
  }
}
console.log(`\nload ${loadavg().map((load) => load.toFixed(2)).join(" ")}`);
server.close();
for (const browser of Object.values(browsers)) await browser.close();
