// What is in the place of a server behind docs/demo, with a worker that does what the tests want.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";

const read = (name) => readFileSync(new URL(`../demo/${name}`, import.meta.url), "utf8");

/** What answers the page, with a worker to which this happens when it is asked something. */
function withWorker(happens) {
  const wasm = gzipSync("").toString("base64");
  class Worker extends EventTarget {
    postMessage(message) {
      queueMicrotask(() => {
        const event = happens(message);
        if (event.type === "message") this.onmessage?.(event);
        else this.dispatchEvent(event);
      });
    }
    terminate() {
      given.ended = true;
    }
  }
  const given = { TAPIR_MODULE: { glue: "", wasm }, TAPIR_MODEL: { "config.json": wasm }, WORKER: "", Worker };
  const URL = Object.assign(class extends globalThis.URL {}, { createObjectURL: () => "blob:worker" });
  const local = runInNewContext(`${read("local.js")};local`, Object.assign(given, { Blob, DecompressionStream, fetch, Response, URL }));
  return { local, given };
}

const answered = (data) => new MessageEvent("message", { data });

test("a worker that does not start is an error, and no wait for ever", async () => {
  for (const [kind, message] of [["error", "not here"], ["error"], ["messageerror"]]) {
    const { local, given } = withWorker(() => Object.assign(new Event(kind), { message }));
    const answer = await local.fetch("v1/models");
    assert.equal(answer.status, 500);
    const expected = new RegExp(`the worker of this page has failed: ${message ?? "it cannot be started"}`);
    assert.match((await answer.json()).error, expected);
    // Nor does anything wait that is asked afterwards.
    const socket = new local.WebSocket("ws://page/v1/stream?threshold=0.5");
    assert.match(await new Promise((closed) => (socket.onclose = ({ reason }) => closed(reason))), expected);
    socket.close();
    assert.equal(given.ended, true);
  }
});

test("a trap ends the worker", async () => {
  const { local, given } = withWorker(({ id, action }) =>
    answered(action === "load" ? { id, value: { maxLength: 1 } } : { id, error: "unreachable", isFatal: true }));
  assert.equal((await local.fetch("v1/models")).status, 200);
  assert.equal(given.ended, undefined);
  for (let asked = 0; asked < 2; asked++) {
    const answer = await local.fetch("v1/tokenize", { body: '{"text": "play"}' });
    assert.match((await answer.json()).error, /the worker of this page has failed: unreachable/);
    assert.equal(given.ended, true);
  }
});

test("the worker says whether an error is a trap", async () => {
  const posted = [];
  const self = { postMessage: (message) => posted.push(message) };
  const errors = [new Error("wrong"), new WebAssembly.RuntimeError("unreachable")];
  class Model {
    info() {}
    words() {
      throw errors.shift();
    }
  }
  const tapirModule = Object.assign(async () => undefined, { Model });
  runInNewContext(read("worker.js"), { self, tapirModule, WebAssembly });
  for (const [id, action] of ["load", "words", "words"].entries()) self.onmessage({ data: { id, action } });
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(posted.map(({ error, isFatal }) => [error, isFatal]),
    [[undefined, undefined], ["wrong", false], ["unreachable", true]]);
});

test("what was unpacked is not kept twice", async () => {
  const { local, given } = withWorker(({ id }) => answered({ id, value: {} }));
  assert.equal((await local.fetch("v1/models")).status, 200);
  assert.deepEqual([given.TAPIR_MODULE, given.TAPIR_MODEL].map(Object.keys), [[], []]);
});
