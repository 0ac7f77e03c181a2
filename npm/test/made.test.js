// Is docs/demo what its sources give? It needs Node and the native program only, and runs in CI.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { gunzipSync } from "node:zlib";

import { model, pages } from "../demo/build.js";
import { likeTheProgram } from "./like.js";
import { exchanges, ROOT, SENTENCES } from "./native.js";

const FOLDER = new URL("docs/demo/", ROOT);
const stale = "is not what its sources give: run `cargo xtask web demo`";

test("its texts are those of their sources", () => {
  for (const [name, text] of Object.entries(pages())) {
    assert.ok(readFileSync(new URL(name, FOLDER), "utf8") === text, `docs/demo/${name} ${stale}`);
  }
});

/** The texts of a script of the page, by their names. */
const texts = (name, variable) => runInNewContext(`${readFileSync(new URL(name, FOLDER), "utf8")};${variable}`);

const unpack = (text) => gunzipSync(Buffer.from(text, "base64"));

/** The page's model, as files by their names. */
const unpacked = () =>
  Object.fromEntries(Object.entries(texts("model.js", "TAPIR_MODEL")).map(([name, text]) => [name, unpack(text)]));

test("its model is the one that ships, with some of the word vectors", () => {
  const [there, files] = [unpacked(), model()];
  assert.deepEqual(Object.keys(there), Object.keys(files));
  for (const [name, bytes] of Object.entries(files)) {
    assert.ok(there[name].equals(bytes), `${name} in docs/demo/model.js ${stale}`);
  }
});

// By what it does, not by a digest of its sources: to make it anew takes minutes, which no comment
// in a source is worth, and compilers need not give the same bytes.
test("its module labels as the native program does", async (t) => {
  const { glue, wasm } = texts("module.js", "TAPIR_MODULE");
  const tapirModule = new Function(`${glue};return tapirModule`)();
  await tapirModule({ module_or_path: unpack(wasm) });
  const files = unpacked();
  const folder = mkdtempSync(join(tmpdir(), "tapir-made-"));
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
  // On x86-64 these give the bits of the module's.
  const kernels = process.arch === "x64" ? "portable" : undefined;
  const expected = exchanges(folder, SENTENCES["snips-small"].filter((_, i) => i % 4 === 0), kernels);
  rmSync(folder, { recursive: true });
  const words = await likeTheProgram(new tapirModule.Model(files), expected).catch((error) => {
    throw new Error(`docs/demo/module.js ${stale}: ${error.message}`);
  });
  t.diagnostic(`${words} words`);
});
