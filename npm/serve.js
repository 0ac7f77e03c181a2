// The inside of a worker: a model and its sessions, which messages reach by numbers.

import { Model } from "./index.js";
import { METHODS } from "./methods.js";

/** Answers the messages that `listen` gives, with `post`. */
export function serve(listen, post) {
  const kept = new Map(); // objects by number
  let next = 0;
  const keep = (object, kind) => {
    kept.set(next, { object, kind });
    return next++;
  };
  const run = async ({ target, method, args }) => {
    if (method === "load") return keep(await Model.load(...args), "model");
    const found = kept.get(target);
    if (!found) throw new Error("it was freed");
    const { object, kind } = found;
    if (method === "free") {
      kept.delete(target);
      return object.free();
    }
    if (kind === "model" && (method === "session" || method === "stream")) return keep(object[method](...args), method);
    if (!METHODS[kind].includes(method)) throw new TypeError(`a ${kind} has no method ${method}`);
    return object[method](...args);
  };
  let hasTrapped = false;
  const answer = async (message) => {
    const { id } = message;
    if (hasTrapped) return; // whoever waits is told that the worker has ended
    try {
      post({ id, value: await run(message) });
    } catch (error) {
      // What was at work in the module stays so, with its locks.
      hasTrapped = error instanceof WebAssembly.RuntimeError;
      const { name, message = error } = Object(error);
      post({ id, error: { name: String(name), message: String(message), isFatal: hasTrapped } });
    }
  };
  // One after the other: what is asked first is answered first.
  let last = Promise.resolve();
  listen((message) => {
    // Where not even an error can be posted, the next message can be answered.
    last = last.then(() => answer(message)).catch(() => undefined);
  });
}
