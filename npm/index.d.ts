/// <reference lib="esnext.disposable" />
// What the package has, and what it means. Objects are as docs/protocol.md of the repository says.

/** A model that labels words. It does not change; any number of sessions share it. */
export class Model {
  /**
   * Of the files of a model directory: `config.json`, `labels.txt`, `vocab.txt`,
   * `model.safetensors`, and what else its configuration names. The module must have been
   * started.
   */
  constructor(files: Files);

  /**
   * Loads a model: one in the package by its name ("snips-small", the default, or "pos"), one
   * whose folder is at a URL or, in Node, a path, or one of files. Starts the module.
   *
   * Word vectors are in the model's folder, in the one around it, or where `vectors` says.
   */
  static load(source?: "snips-small" | "pos" | (string & {}) | URL | Files, options?: { vectors?: string | URL }): Promise<Model>;

  /** The files that a model with this `config.json` has beside it; word vectors, if any, come last. */
  static files(config: string): string[];

  /** Starts a session. */
  session(options?: SessionOptions): Session;

  /** Starts what answers messages of the protocol, as `tapir stream` does. */
  stream(options?: SessionOptions): Stream;

  /**
   * Labels a text, which is split as the model's corpus is, or words, which are taken as they are.
   * They are read word by word, and revised at the end unless `finalPass` is false.
   */
  tag(what: string | readonly string[], options?: SessionOptions): Tagged;

  /** The words that the model reads of a text. */
  words(text: string): string[];

  /** What can be known of the model. */
  info(): Info;

  /** Gives its memory back, once its sessions do, too. Without it that happens some time later. */
  free(): void;
  [Symbol.dispose](): void;
}

/** A stream of words and their labels so far. A call that throws changes nothing. */
export class Session {
  private constructor();

  /**
   * Reads one word, as it is, and says what changed. `stability` is how likely the recogniser finds
   * it, from 0 to 1, that it will not take the word back: a factor of our `stabilities()`.
   */
  push(word: string, stability?: number): Update;

  /**
   * Takes a recogniser's whole new hypothesis: the words that it shares with the last one stay,
   * the rest is taken back and read anew. A text is split as the model's corpus is, words are taken
   * as they are. `stability` is how likely the recogniser finds it that its words stay: of all
   * alike, or of each.
   */
  update(words: string | readonly string[], stability?: number | readonly number[]): Update;

  /** Takes back the last words, one unless told otherwise, exactly: as if they had never been read. */
  revoke(words?: number): Update;

  /**
   * Ends the utterance: labels what a delayed model holds back, then revises a last time unless the
   * session was started with `finalPass: false`. Afterwards only `reset` and questions are possible.
   */
  finish(): Finish;

  /** Starts a new utterance with the same options. */
  reset(): void;

  /** Changes the policy's threshold from the next word on: 0 revises at every word, 1 never does. */
  setThreshold(threshold: number): void;

  /** From the next answer on, says what will stay as it is with this probability. */
  setSettled(probability: number): void;

  /** The labels of the words from `first()` on. */
  labels(): string[];

  /** The model's probability for each of these labels. */
  probabilities(): Float32Array;

  /** The probability that each of these labels will not change any more; undefined if the model was not calibrated. */
  stabilities(): Float32Array | undefined;

  /** The labelled stretches of the words from `first()` on, counted from the session's start. */
  spans(): Span[];

  /** The probability that a span will stay as it is; undefined if there is no such stretch, or no calibration. */
  spanStability(span: Span): number | undefined;

  /** The probability of every label for one word, in the order of `Model.info().labels`. */
  distribution(position: number): Float32Array | undefined;

  /** What the utterance is about; undefined if the model knows no intents, or before the first word. */
  intent(): Intent | undefined;

  /** The probability of every intent, in the order of `Model.info().intents`. */
  intentDistribution(): Float32Array | undefined;

  /** The probability that the utterance is one of those that the model is for. */
  inDomain(): number | undefined;

  /** How many words were read. */
  words(): number;

  /** How many words can be taken back now. */
  undoable(): number;

  /** How many labels, from the start, will never be edited again. */
  committed(): number;

  /** The first word whose label is still held: 0 until a session is longer than its window and undo. */
  first(): number;

  /** How many bytes the session holds, its model not included. */
  bytes(): number;

  /** Gives its memory back. Without it that happens some time later. */
  free(): void;
  [Symbol.dispose](): void;
}

/** Answers messages of the protocol. */
export class Stream {
  private constructor();

  /** Answers a message, both as JSON; what is wrong with it is said in the answer. */
  answer(message: string): string;

  /** Gives its memory back. */
  free(): void;
  [Symbol.dispose](): void;
}

/**
 * Loads the WebAssembly module, once; `Model.load` does that by itself. It is beside the package's
 * files unless it is given: as a URL, as bytes, or compiled.
 */
export function start(module?: string | URL | Response | BufferSource | WebAssembly.Module): Promise<void>;

/** Makes the change of an update to an array of labels that follows a session. */
export function apply(update: Update, labels: string[]): void;

/** The files of a model by their names; texts may be strings. */
export type Files = Readonly<Record<string, Uint8Array | string>>;

/** How a session runs. */
export interface SessionOptions {
  /** Of the policy, from 0, which revises at every word, to 1, which never does. Default: the model's. */
  threshold?: number;
  /** How many words can be taken back at any time. Default: 32. */
  undo?: number;
  /** How many words, from the newest back, a revision reads and may edit. Default, and the most: the model's. */
  window?: number;
  /** Both passes, the reviser at every word, or the first pass alone. Default: what the model has. */
  mode?: Mode;
  /** Does `finish` revise a last time? Default: true. */
  finalPass?: boolean;
  /** Updates say what will stay as it is with this probability, such as 0.95. The model must be calibrated. */
  settled?: number;
}

export type Mode = "two-pass" | "restart" | "first-pass";

/** The difference that one call made to the labels. `apply` makes it to an array. */
export interface Update {
  /** Words read so far. */
  step: number;
  /** What was chosen for the last word; absent if no word was read. */
  action?: "WRITE" | "REVISE";
  /** The policy value behind it, 0 to 1. */
  policy?: number;
  /** Labels that are new or different, by position. */
  edits: Edit[];
  /** How many words have a label now. */
  length: number;
  /** How many labels, from the start, will never be edited again. */
  committed: number;
  /** What the utterance is about, from models that know intents. */
  intent?: Intent;
  /** What has settled since the answer before, where that was asked for. */
  settled?: Settled;
}

/** One label that is new or different. */
export interface Edit {
  /** Index of the word, from 0 at the session's start. */
  position: number;
  /** Its label now. */
  label: string;
  /** Its label before, if it had one. */
  old?: string;
  /** The model's probability for the label. */
  probability: number;
  /** The probability that the label will not change any more, from calibrated models. */
  stability?: number;
}

/** The end of an utterance: the last update, and all labels from `first` on. */
export interface Finish extends Update {
  first: number;
  labels: string[];
  spans: Span[];
}

/** A labelled stretch of words. */
export interface Span {
  label: string;
  /** Its first word. */
  start: number;
  /** One past its last word. */
  end: number;
}

/** What an utterance is about. */
export interface Intent {
  label: string;
  probability: number;
  /** Is it another one than in the answer before, or the first? */
  changed?: boolean;
  stability?: number;
  /** The probability that the utterance is one of those that the model is for. */
  in_domain?: number;
}

/** What has settled: it is said once. */
export interface Settled {
  words?: number[];
  spans?: Span[];
  intent?: boolean;
}

/** A text with its labels. */
export interface Tagged {
  words: string[];
  labels: string[];
  probabilities: number[];
  /** Where each word begins and ends in the text, so that `text.slice(...offsets[i])` is it; absent if words were given. */
  offsets?: [number, number][];
  spans: Span[];
  intent?: Intent;
}

/** What can be known of a model. */
export interface Info {
  /** The task that it was trained on. */
  task: string;
  labels: string[];
  intents?: string[];
  /** "plain" where every word has a label of its own. */
  scheme: "iob" | "plain";
  mode: Mode;
  threshold: number;
  /** A word is labelled when so many more have been read. */
  delay: number;
  /** How many words a revision reads at most. */
  maxLength: number;
  /** Does it know how far its labels can be trusted? */
  calibrated: boolean;
  /** The instructions that it runs with. */
  kernels: "simd128" | "portable";
}
