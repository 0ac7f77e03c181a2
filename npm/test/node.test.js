// The package in Node.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Model, Session, Stream } from "../index.js";
import { METHODS } from "../methods.js";
import { checks } from "./checks.js";
import { examples } from "./documents.js";
import { likeTheProgram } from "./like.js";
import { exchanges, ROOT, SENTENCES } from "./native.js";

/** What a script prints that runs to its end. */
function run(code) {
  // In the package's folder its name means itself.
  const file = new URL(`../.script-${process.pid}.mjs`, import.meta.url);
  writeFileSync(file, code);
  const { status, stdout, stderr, error } = spawnSync(process.execPath, [fileURLToPath(file)], { encoding: "utf8", timeout: 60_000 });
  rmSync(file);
  assert.equal(status, 0, error?.message ?? stderr);
  return stdout;
}

for (const [name, check] of Object.entries(checks)) test(name, check);

for (const name of ["snips-small", "pos"]) {
  test(`${name} answers as the native program does`, async (t) => {
    const model = await Model.load(name);
    const words = await likeTheProgram(model, exchanges(name, SENTENCES[name]));
    t.diagnostic(`${words} words of ${SENTENCES[name].length} sentences`);
    model.free();
  });
}

// Without fused products on both sides, as on x86-64, whole models give the same bits.
test("simd128 gives the bits of the portable kernels", { skip: process.arch !== "x64" }, async () => {
  for (const name of ["snips-small", "pos"]) {
    const model = await Model.load(name);
    const stream = model.stream();
    for (const { message, answer } of exchanges(name, SENTENCES[name].slice(0, 12), "portable")) {
      assert.equal(JSON.parse(stream.answer(JSON.stringify(message))).policy, answer.policy, JSON.stringify(message));
    }
    stream.free();
    model.free();
  }
});

test("a model with a pretrained reviser is loaded from its folder", async () => {
  const vectors = new URL("crates/tapir-vectors/en_300d.tapirvec", ROOT);
  const folder = new URL("crates/tapir-snips/model", ROOT);
  const model = await Model.load(folder, { vectors });
  await likeTheProgram(model, exchanges("snips", SENTENCES.snips));
  await assert.rejects(Model.load(fileURLToPath(folder)), /tapirvec.*no such file/);
  model.free();
});

test("a worker of which nothing is asked keeps no process alive", () => {
  const printed = run(`import { TapirWorker } from "tapir-nlp/worker";
    const model = await TapirWorker.load("snips-small");
    const session = await model.session();
    console.log((await model.tag("play some jazz")).labels.join(" "));
    await session.push(() => 1).catch(() => undefined); // cannot be sent`);
  assert.equal(printed, "O O B-genre\n");
});

test("the package has all files that it names, and its licences", () => {
  const { files } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  for (const file of files) assert.ok(existsSync(new URL(`../${file}`, import.meta.url)), file);
  assert.deepEqual(files.filter((file) => file.startsWith("LICENSE")), ["LICENSE-APACHE", "LICENSE-MIT"]);
});

test("the types have the methods that there are, and no others", () => {
  const types = readFileSync(new URL("../index.d.ts", import.meta.url), "utf8");
  for (const type of [Model, Session, Stream]) {
    const [, body] = new RegExp(`export class ${type.name} {\n([^]*?)\n}`).exec(types);
    const said = [...body.matchAll(/^ {2}(?!private|constructor|static)(\w+)\(/gm)].map(([, name]) => name);
    const own = Object.getOwnPropertyNames(type.prototype);
    const there = own.filter((name) => !name.startsWith("__") && name !== "constructor");
    assert.deepEqual(said.sort(), there.sort(), type.name);
    const remote = there.filter((name) => !["free", "session", "stream"].includes(name));
    assert.deepEqual([...METHODS[type.name.toLowerCase()]].sort(), remote.sort(), `${type.name} in a worker`);
  }
});

test("TypeScript takes the types", (t) => {
  const compiler = process.env.TAPIR_TOOLS && join(process.env.TAPIR_TOOLS, "typescript/lib/tsc.js");
  if (!compiler) return t.skip("the compiler cannot be installed here");
  // Without the library of what can be disposed of, which the types ask for themselves.
  const flags = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom", "--module", "nodenext"];
  const { status, stdout } = spawnSync(process.execPath, [compiler, ...flags, "types.ts"], {
    cwd: fileURLToPath(new URL(".", import.meta.url)), encoding: "utf8",
  });
  assert.equal(status, 0, stdout);
});

for (const { document, line, code, shown } of examples("js")) {
  test(`the example at ${document}:${line} runs and prints what is shown`, () => {
    const printed = run(code);
    if (shown !== undefined) assert.equal(printed, shown);
  });
}
