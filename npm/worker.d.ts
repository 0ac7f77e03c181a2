/// <reference lib="esnext.disposable" />
// A model in a worker of its own, so that a page never waits.

import type { Files, Model, Session, SessionOptions, Stream } from "./index.js";

/** The same methods, each with a promise. */
type Promised<T, Left extends PropertyKey = never> = {
  [K in Exclude<keyof T, Left | symbol | "free">]: T[K] extends (...args: infer A) => infer R
    ? (...args: A) => Promise<R>
    : never;
};

/** A model in a worker. What it is asked is answered in order. */
export interface TapirWorker extends Promised<Model, "session" | "stream"> {}
export class TapirWorker {
  private constructor();
  /** Starts a worker and loads a model in it, as `Model.load` does. */
  static load(source?: string | URL | Files, options?: { vectors?: string | URL }): Promise<TapirWorker>;
  /** Starts a session in the worker. */
  session(options?: SessionOptions): Promise<WorkerSession>;
  /** Starts what answers messages of the protocol. */
  stream(options?: SessionOptions): Promise<WorkerStream>;
  /** Gives the model's memory back; the worker goes on for its sessions. */
  free(): Promise<void>;
  /** Ends the worker. What it has not answered yet fails. */
  terminate(): void;
  [Symbol.dispose](): void;
}

/** A session in a worker. */
export interface WorkerSession extends Promised<Session> {}
export class WorkerSession {
  private constructor();
  /** Gives its memory back. Without it that happens some time later. */
  free(): Promise<void>;
}

/** What answers messages of the protocol, in a worker. */
export interface WorkerStream extends Promised<Stream> {}
export class WorkerStream {
  private constructor();
  free(): Promise<void>;
}
