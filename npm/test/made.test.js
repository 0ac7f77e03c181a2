// Is docs/demo what its sources give? It needs Node and the native program only, and runs in CI.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { gunzipSync } from "node:zlib";

import { model, pages } from "../demo/build.js";
import { ROOT } from "./native.js";

const FOLDER = new URL("docs/demo/", ROOT);
const stale = "is not what its sources give: run `cargo xtask web demo`";

test("its texts are those of their sources", () => {
  for (const [name, text] of Object.entries(pages())) {
    assert.ok(readFileSync(new URL(name, FOLDER), "utf8") === text, `docs/demo/${name} ${stale}`);
  }
});

test("its model is the one that ships, with some of the word vectors", () => {
  const packed = runInNewContext(`${readFileSync(new URL("model.js", FOLDER), "utf8")};TAPIR_MODEL`);
  const files = model();
  assert.deepEqual(Object.keys(packed), Object.keys(files));
  for (const [name, bytes] of Object.entries(files)) {
    assert.ok(gunzipSync(Buffer.from(packed[name], "base64")).equals(bytes), `${name} in docs/demo/model.js ${stale}`);
  }
});
