// What can be asked of a model, a session or a stream in a worker: the methods that they have here.

export const METHODS = {
  model: ["tag", "words", "info"],
  session: [
    "push", "update", "revoke", "finish", "reset", "setThreshold", "setSettled", "labels", "probabilities",
    "stabilities", "spans", "spanStability", "distribution", "intent", "intentDistribution", "inDomain", "words",
    "undoable", "committed", "first", "bytes",
  ],
  stream: ["answer"],
};
