// Labels words while they arrive, over the WebSocket of `tapir serve`. Nothing to install; Node 20.10 or
// newer.
//
//     node stream.mjs "add step to me to the fifty clasicos playlist"
//     node stream.mjs --server wss://example.org --token TOKEN "play some jazz"
//
// `open` and `ask` run in a browser as they are.

import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";

// Node 20 has a WebSocket only if it is asked for one.
if (typeof WebSocket === "undefined") {
  const flags = ["--experimental-websocket", "--no-warnings", ...process.argv.slice(1)];
  process.exit(spawnSync(process.execPath, flags, { stdio: "inherit" }).status ?? 1);
}

/** Opens a stream. A browser can send no header with a WebSocket, so the token is a second protocol. */
function open(server, token) {
  const protocols = token ? ["tapir.v1", `bearer.${token}`] : ["tapir.v1"];
  const socket = new WebSocket(`${server}/v1/stream`, protocols);
  return new Promise((resolve, reject) => {
    socket.onopen = () => resolve(socket);
    socket.onerror = () => reject(new Error(`${server}: cannot open a stream`));
  });
}

/** Sends a message; `seen` is called with every answer, the promise gives the final one. */
function ask(socket, message, seen) {
  return new Promise((resolve, reject) => {
    socket.onmessage = ({ data }) => {
      const answer = JSON.parse(data);
      if (answer.error) return reject(new Error(answer.error));
      seen(answer);
      if (!answer.provisional) resolve(answer);
    };
    socket.onclose = ({ code, reason }) =>
      reject(new Error(`the server closed the stream: ${code} ${reason}`));
    socket.send(JSON.stringify(message));
  });
}

/** A line for an answer: what was read last, is it final, which labels are new or different. */
function show({ step, provisional, edits, labels }) {
  const name = labels ? "the end" : words[step - 1];
  const kind = provisional ? "provisional" : "final";
  const change = ({ position, label, old }) => (old ? `${words[position]}: ${old} -> ${label}` : label);
  const changes = edits.map(change);
  console.log(name.padEnd(12) + kind.padEnd(13) + (changes.join(", ") || "-"));
}

const server = { type: "string", default: "ws://127.0.0.1:8642" };
const options = { server, token: { type: "string" } };
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const said = positionals.join(" ").split(/\s+/).filter(Boolean);
// The words as the model reads them: "What's" may be two, "..." none.
const words = [];

try {
  const socket = await open(values.server, values.token);
  for (const word of said) {
    const before = words.length;
    await ask(socket, { push: word }, (answer) => {
      words.splice(before, words.length, ...(answer.words ?? [word]));
      if (words.length) show(answer);
    });
  }
  const { spans } = await ask(socket, { finish: true }, show);
  socket.onclose = null;
  socket.close();
  console.log();
  for (const { label, start, end } of spans) {
    console.log(`${label}: ${words.slice(start, end).join(" ")}`);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
