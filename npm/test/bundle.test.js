// The package as a bundler takes it, in real browsers. The models are not bundled: a page has them
// copied, and loads them by their URL.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { BROWSERS, until } from "./browser.js";
import { serve } from "./server.js";

const PAGE = `import { Model } from "tapir-nlp";
import { TapirWorker } from "tapir-nlp/worker";
globalThis.ask = async () => {
  const [here, there] = [await Model.load("/models/snips-small"), await TapirWorker.load("/models/snips-small")];
  const labels = [here.tag("play some jazz").labels, (await there.tag("play some jazz")).labels];
  there.terminate();
  return labels;
};`;

/** Bundles a script for pages, and gives what that makes, by the paths. */
async function bundle(tools, script) {
  const folder = mkdtempSync(join(tmpdir(), "tapir-bundle-"));
  try {
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(fileURLToPath(new URL("..", import.meta.url)), join(folder, "node_modules/tapir-nlp"), "dir");
    writeFileSync(join(folder, "page.js"), script);
    const webpack = createRequire(join(tools, "package.json"))("webpack");
    const output = { path: join(folder, "dist"), publicPath: "/bundled/" };
    const stats = await new Promise((resolve, reject) => {
      const done = (error, stats) => (error ? reject(error) : resolve(stats));
      webpack({ mode: "production", context: folder, entry: "./page.js", output }, done);
    });
    const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
    const said = [...errors, ...warnings].map(({ message }) => message);
    // That a bundle with a module in it is large is no fault.
    assert.deepEqual(said.filter((message) => !/size limit|performance/.test(message)), []);
    return Object.fromEntries(readdirSync(output.path).map((name) => [`/bundled/${name}`, readFileSync(join(output.path, name))]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const tools = process.env.TAPIR_TOOLS;
const absent = (!tools || !existsSync(join(tools, "webpack"))) && "webpack cannot be installed here";

test("webpack bundles the package, and its worker", { skip: absent }, async (t) => {
  const files = await bundle(tools, PAGE);
  const server = await serve({ ...files, "/": '<!doctype html><meta charset="utf-8"><script src="/bundled/main.js"></script>' });
  t.after(server.close);
  for (const [name, kind] of Object.entries(BROWSERS)) {
    await t.test(`it runs in ${name}`, async (t) => {
      const browser = await kind.open().catch((error) => {
        if (process.env.TAPIR_BROWSERS?.split(",").includes(name)) throw error;
      });
      if (!browser) return t.skip(`${name} is not here`);
      t.after(browser.close);
      await browser.go(`${server.url}/`);
      await until("the page is ready", () => browser.evaluate("typeof ask === 'function'"));
      assert.deepEqual(await browser.evaluate("ask()"), Array(2).fill(["O", "O", "B-genre"]));
    });
  }
});
