// Makes docs/demo: the page of `tapir serve`, with the module and a model in it instead of a server
// behind it. `cargo xtask web demo` runs it.
//
// A page from a disk may load classic scripts and styles beside it, and nothing else. So the module
// and the model are texts in scripts, gzipped and in base64.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const ROOT = new URL("../../", import.meta.url);
const MODEL = "crates/tapir-models/models/snips-small";
const read = (path, encoding = "utf8") => readFileSync(new URL(path, ROOT), encoding);

// What the page may load: what is beside it, and nothing from other hosts. Its worker is a blob,
// its data are `data:`. `file:`, for browsers need not agree what 'self' is of a page from a disk.
const POLICY = "default-src 'none'; script-src 'self' file: blob: 'wasm-unsafe-eval'; worker-src blob:; connect-src data:; "
  + "style-src 'self' file:; img-src data:; base-uri 'none'; form-action 'none'";

/** The page, changed where a server would be named. A change that no longer fits is an error. */
function html() {
  const changes = [
    [`<meta charset="utf-8">`, `<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="${POLICY}">`],
    [`<link rel="stylesheet" href="assets/page.css">`, `<link rel="stylesheet" href="page.css">`],
    [`<script type="module" src="assets/page.js"></script>`,
      ["module.js", "model.js", "demo.js"].map((name) => `<script defer src="${name}"></script>`).join("\n")],
    [`<title>tapir, live</title>`, `<title>tapir in this page</title>`],
    [`<nav aria-label="Pages"><a href="docs">API documentation</a></nav>`,
      `<nav aria-label="Pages"><a href="../browser.md">How it works</a></nav>`],
    [`<p class="tagline">Labels for words while they arrive</p>`,
      `<p class="tagline">Labels for words while they arrive, computed in this page</p>`],
    [`This page needs JavaScript. The API works without it: see /openapi.json.`, `This page needs JavaScript.`],
    [`      <label class="field" for="speed">`,
      `      <button id="listen" type="button" hidden>Listen</button>
      <label class="field" for="speed">`],
    // Shorter, so that all are in a row.
    [`<button id="reset" type="button">New utterance</button>`, `<button id="reset" type="button">New</button>`],
    [`    <div id="examples"`, `    <p id="listen-hint" class="hint" hidden>Listen uses the browser’s own speech recognition, which may send what it hears to its maker. Labels are made here.</p>
    <div id="examples"`],
  ];
  let page = read("crates/tapir-serve/page/index.html");
  for (const [from, to] of changes) {
    if (page.split(from).length !== 2) throw new Error(`the server's page has changed: it lacks ${from}`);
    page = page.replace(from, () => to);
  }
  return page;
}

/** The scripts of the page as one. */
function script() {
  const worker = read("npm/demo/worker.js");
  return [
    "// Made by `cargo xtask web demo` from npm/demo and crates/tapir-serve/page.\n\"use strict\";\n",
    `const WORKER = ${JSON.stringify(worker)};\n`,
    read("npm/demo/local.js"),
    `\n(({ fetch, WebSocket }) => {\n${read("crates/tapir-serve/page/page.js")}})(local);\n\n`,
    read("npm/demo/speech.js"),
  ].join("");
}

const pack = (bytes) => gzipSync(bytes, { level: 9 }).toString("base64");

/** A script that sets a variable to an object of texts, a line each. */
const texts = (name, object) =>
  `// Made by \`cargo xtask web demo\`.\nvar ${name} = {\n${Object.entries(object)
    .map(([key, text]) => `${JSON.stringify(key)}: ${JSON.stringify(text)},\n`)
    .join("")}};\n`;

/** The words that a text has so often. */
function frequent(files, often) {
  const counts = new Map();
  for (const word of files.flatMap((file) => read(file).split(/\s+/))) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].filter(([, count]) => count >= often).map(([word]) => word);
}

/** The frequent words of the corpora that ship, but for those that the model has a row of its own for. */
function words() {
  const requests = ["train", "valid", "test"].map((split) => `crates/tapir-models/data/snips/${split}/seq.in`);
  const other = ["alarms", "english", "requests"].map((name) => `crates/tapir-models/text/${name}.txt`);
  const known = new Set(read(`${MODEL}/vocab.txt`).split("\n"));
  const all = new Set([...frequent(requests, 2), ...frequent(other, 4)]);
  return [...all].filter((word) => word && !known.has(word)).sort();
}

/** The word vectors of these words alone: all of them would be most of the page. */
export function vectors() {
  const folder = mkdtempSync(join(tmpdir(), "tapir-demo-"));
  const [list, out] = [join(folder, "words.txt"), join(folder, "some.tapirvec")];
  writeFileSync(list, words().join("\n"));
  const program = process.env.TAPIR_PROGRAM ?? fileURLToPath(new URL("target/debug/tapir", ROOT));
  const { status, stderr, error } = spawnSync(program, ["vectors", "prune", "en_300d.tapirvec", out, "--list", list], { encoding: "utf8" });
  if (error || status !== 0) throw new Error(`${program} vectors prune: ${error?.message ?? stderr}`);
  const bytes = readFileSync(out);
  rmSync(folder, { recursive: true });
  return bytes;
}

/** The files of the model. */
export function model() {
  const names = ["config.json", "labels.txt", "vocab.txt", "model.safetensors"];
  return { ...Object.fromEntries(names.map((name) => [name, read(`${MODEL}/${name}`, null)])), "en_300d.tapirvec": vectors() };
}

/** What is made of texts alone, by its name: the tests check that it is what is there. */
export const pages = () => ({ "index.html": html(), "page.css": read("crates/tapir-serve/page/page.css"), "demo.js": script() });

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, built] = [new URL("docs/demo/", ROOT), new URL(process.argv[2], `file://${process.cwd()}/`)];
  mkdirSync(folder, { recursive: true });
  const write = (name, text) => {
    writeFileSync(new URL(name, folder), text);
    console.log(`docs/demo/${name}: ${(text.length / 1e6).toFixed(2)} MB`);
  };
  for (const [name, text] of Object.entries(pages())) write(name, text);
  const [glue, wasm] = [new URL("tapir_wasm.js", built), new URL("tapir_wasm_bg.wasm", built)].map((url) => readFileSync(url));
  write("module.js", texts("TAPIR_MODULE", { glue: glue.toString(), wasm: pack(wasm) }));
  write("model.js", texts("TAPIR_MODEL", Object.fromEntries(Object.entries(model()).map(([name, bytes]) => [name, pack(bytes)]))));
}
