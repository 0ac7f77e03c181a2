// A model in a worker of its own, so that a page never waits: the same methods, each with a promise.

import { METHODS } from "./methods.js";
import { inNode, locate, resolve } from "./places.js";

/** Messages to a worker, each with a promise of its answer. */
class Line {
  #waiting = new Map();
  #next = 0;
  #ended;

  static async open() {
    const line = new Line();
    const answered = (answer) => line.#answered(answer);
    const failed = (error) => line.end(`the worker has ended: ${error?.message ?? "it cannot be loaded"}`);
    const unread = () => line.end("the worker was ended: an answer of it cannot be read");
    if (inNode) {
      const { Worker } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:worker_threads");
      line.worker = new Worker(new URL("./worker-node.js", import.meta.url));
      line.worker.on("message", answered).on("error", failed).on("messageerror", unread);
      line.worker.on("exit", () => line.end("the worker has ended"));
    } else {
      line.worker = new Worker(new URL("./worker-web.js", import.meta.url), { type: "module" });
      line.worker.onmessage = ({ data }) => answered(data);
      line.worker.onerror = failed;
      line.worker.addEventListener("messageerror", unread); // Chromium has no `onmessageerror` here
    }
    return line;
  }

  ask(target, method, args) {
    if (this.#ended) return Promise.reject(new Error(this.#ended));
    const id = this.#next++;
    const answer = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.worker.ref?.();
    try {
      this.worker.postMessage({ id, target, method, args });
    } catch (error) {
      this.#take(id); // it cannot be sent: a function, for one
      return Promise.reject(error);
    }
    return answer;
  }

  /** Frees something in the worker. With the worker it is gone, too. */
  free(target) {
    return this.ask(target, "free", []).catch(() => undefined);
  }

  #answered({ id, value, error }) {
    if (error?.isFatal) return this.end(`the worker has ended: ${error.message}`);
    const { resolve, reject } = this.#take(id);
    if (error) reject?.(new (error.name === "TypeError" ? TypeError : Error)(error.message));
    else resolve?.(value);
  }

  /** What waits for an answer, which waits no more. A thread of Node that nobody waits for keeps no process alive. */
  #take(id) {
    const waiting = this.#waiting.get(id) ?? {};
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.worker.unref?.();
    return waiting;
  }

  end(reason) {
    this.#ended ??= reason;
    this.worker.terminate();
    for (const { reject } of this.#waiting.values()) reject(new Error(this.#ended));
    this.#waiting.clear();
  }
}

/** What nobody has any more is freed in the worker, too, which cannot know. */
const abandoned = new FinalizationRegistry(({ line, target }) => line.free(target));

/** Something in a worker. */
class Remote {
  constructor(line, target) {
    this.line = line;
    this.target = target;
    abandoned.register(this, { line, target }, this);
  }

  static withMethods(kind) {
    for (const method of METHODS[kind]) {
      this.prototype[method] = function (...args) {
        return this.line.ask(this.target, method, args);
      };
    }
  }

  free() {
    abandoned.unregister(this);
    return this.line.free(this.target);
  }
}

export class WorkerSession extends Remote {}
WorkerSession.withMethods("session");

export class WorkerStream extends Remote {}
WorkerStream.withMethods("stream");

export class TapirWorker extends Remote {
  /** Starts a worker and loads a model in it, as `Model.load` does. */
  static async load(source = "snips-small", { vectors } = {}) {
    const isFolder = typeof source === "string" || source instanceof URL;
    // Relative to the page, not to the worker.
    const place = isFolder ? (await locate(source)).href : source;
    const options = vectors === undefined ? {} : { vectors: (await resolve(vectors)).href };
    const line = await Line.open();
    try {
      return new TapirWorker(line, await line.ask(undefined, "load", [place, options]));
    } catch (error) {
      line.end("the worker has ended");
      throw error;
    }
  }

  async session(options) {
    return new WorkerSession(this.line, await this.line.ask(this.target, "session", [options]));
  }

  async stream(options) {
    return new WorkerStream(this.line, await this.line.ask(this.target, "stream", [options]));
  }

  /** Ends the worker; what it was asked and has not answered fails. */
  terminate() {
    this.line.end("the worker was ended");
  }
}
TapirWorker.withMethods("model");
if (Symbol.dispose) TapirWorker.prototype[Symbol.dispose] = TapirWorker.prototype.terminate;
