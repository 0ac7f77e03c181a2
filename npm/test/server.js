// Serves the package to browsers: pages for the tests and, as after an installation, the package.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";

const PACKAGE = new URL("../", import.meta.url);
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".wasm": "application/wasm" };

/** Serves, until it is closed, the package under `/node_modules/tapir-nlp/`, and pages by their paths. */
export async function serve(pages) {
  const server = createServer(async ({ url }, response) => {
    const path = new URL(url, "http://localhost").pathname;
    try {
      const content = pages[path] ?? (await readFile(new URL(`.${path.replace(/^\/node_modules\/tapir-nlp/, "")}`, PACKAGE)));
      response.writeHead(200, { "content-type": TYPES[extname(path) || ".html"] ?? "application/octet-stream" });
      response.end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}
