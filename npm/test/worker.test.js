// What goes wrong in a worker, and what is forgotten there: in Node, where both can be brought
// about.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { Session } from "../index.js";
import { serve } from "../serve.js";
import { TapirWorker } from "../worker.js";
import { until } from "./browser.js";

/** The inside of a worker without a thread: `ask` sends a message, and gives what it posts next. */
function inside(refuses = () => false) {
  let take;
  let posted;
  serve(
    (listener) => (take = listener),
    (answer) => {
      if (refuses(answer)) throw new Error("it cannot be posted");
      posted(answer);
    },
  );
  return (message) => {
    const answer = new Promise((resolve) => (posted = resolve));
    take(message);
    return answer;
  };
}

/** What a module throws that has come to code which must not be reached. */
function trap() {
  // A function of no arguments whose body is `unreachable`, exported as `f`.
  const bytes = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 5, 1, 3, 0, 0, 11];
  new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(bytes))).exports.f();
}

test("a trap is answered as the end of the worker, which runs nothing after it", async () => {
  const ask = inside();
  await ask({ id: 0, method: "load", args: ["snips-small"] });
  const session = (await ask({ id: 1, target: 0, method: "session", args: [] })).value;
  const ordinary = await ask({ id: 2, target: session, method: "push", args: [7] });
  assert.deepEqual([ordinary.error.name, ordinary.error.isFatal], ["TypeError", false]);
  const { push } = Session.prototype;
  Session.prototype.push = trap;
  const { id, error } = await ask({ id: 3, target: session, method: "push", args: ["play"] });
  Session.prototype.push = push;
  assert.deepEqual([id, error.isFatal], [3, true]);
  assert.match(error.message, /unreachable/);
  const later = ask({ id: 4, target: session, method: "push", args: ["play"] });
  assert.equal(await Promise.race([later, new Promise((resolve) => setTimeout(resolve, 100, "nothing"))]), "nothing");
});

test("an answer that cannot be posted is an error, and the next message is answered", async () => {
  const ask = inside(({ id, value }) => id === 1 && value !== undefined);
  await ask({ id: 0, method: "load", args: ["snips-small"] });
  const { id, error } = await ask({ id: 1, target: 0, method: "words", args: ["play"] });
  assert.deepEqual([id, error.message], [1, "it cannot be posted"]);
  assert.deepEqual((await ask({ id: 2, target: 0, method: "words", args: ["play"] })).value, ["play"]);
});

test("an error that cannot be posted either holds nothing up", async () => {
  const ask = inside(({ id }) => id === 1);
  await ask({ id: 0, method: "load", args: ["snips-small"] });
  ask({ id: 1, target: 0, method: "words", args: ["play"] });
  assert.deepEqual((await ask({ id: 2, target: 0, method: "words", args: ["play"] })).value, ["play"]);
});

test("a thread that exits without an error leaves nobody waiting", async () => {
  const model = await TapirWorker.load("snips-small");
  const waiting = model.tag("play jazz ".repeat(100));
  const failed = assert.rejects(waiting, /the worker has ended/);
  model.line.worker.terminate(); // not by way of the package
  await failed;
  await assert.rejects(model.info(), /the worker has ended/);
});

test("what nobody has any more is freed in the worker, too", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  const model = await TapirWorker.load("snips-small");
  const kept = await model.session();
  const target = await (async () => {
    const session = await model.session();
    await session.push("play");
    return session.target;
  })();
  const isThere = (target) => model.line.ask(target, "words", []).then(() => true, () => false);
  assert.equal(await isThere(target), true);
  await until("it is collected", async () => {
    collect();
    return !(await isThere(target));
  });
  assert.equal(await isThere(kept.target), true);
  model.terminate();
});
