// Where the module and models are, on the web and in Node.

export const inNode = globalThis.process?.release?.name === "node";

/** The models in the package. */
export const SHIPPED = ["snips-small", "pos"];
const MODELS = new URL(/* webpackIgnore: true */ /* @vite-ignore */ "./models/", import.meta.url);

/** What a URL begins with. A scheme has two letters or more, for the drives of Windows have one. */
const SCHEME = /^[a-z][a-z\d+.-]+:/i;

/** A URL, also of a path; relative ones begin at the page or, in Node, at the working directory. */
export async function resolve(url) {
  if (url instanceof URL) return url;
  if (!inNode) return new URL(url, globalThis.location.href);
  if (SCHEME.test(url)) return new URL(url);
  // Not `new URL`: in the name of a file #, ? and % mean nothing.
  const { pathToFileURL } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:url");
  return pathToFileURL(url);
}

/** The URL of a model's folder: of one in the package, or one that a path or a URL names. */
export async function locate(source) {
  if (SHIPPED.includes(source)) return new URL(`${source}/`, MODELS);
  const text = String(source);
  if (!/[\\/]/.test(text)) {
    const names = SHIPPED.join(", ");
    throw new Error(`${text}: no model of this name is in the package, which has ${names}; paths of folders have a /`);
  }
  return resolve(text.replace(/\/*$/, "/"));
}

/** Where a file of a model may be. Models may share word vectors: then these are in the folder around them. */
export function candidates(name, folder) {
  if (!name.endsWith(".tapirvec")) return [new URL(name, folder)];
  const shared = new URL(`../${name}`, folder);
  return folder.href.startsWith(MODELS.href) ? [shared] : [new URL(name, folder), shared];
}

/** The bytes behind the first of some URLs that has any. */
export async function first(urls) {
  const reasons = [];
  for (const url of urls) {
    const { bytes, missing } = await get(url);
    if (bytes) return bytes;
    reasons.push(`${url}: ${missing}`);
  }
  throw new Error(reasons.join("; "));
}

const ABSENT = "there is no such file";

/** The bytes behind a URL, or why they are missing. */
async function get(url) {
  if (inNode && url.protocol === "file:") return read(url);
  const response = await fetch(url);
  const { ok, status, headers } = response;
  if (status === 404 || status === 410) return { missing: ABSENT };
  // A store such as S3 says so of what is not there to whoever may not list its files.
  if (status === 403) return { missing: "the server refuses it, or there is no such file" };
  if (!ok) throw new Error(`${url}: the server answered ${status}`);
  // A server of an application of one page answers with that page whatever it does not have.
  if (headers.get("content-type")?.startsWith("text/html")) {
    return { missing: "the server answered with a page of HTML: there is no such file" };
  }
  return { bytes: new Uint8Array(await response.arrayBuffer()) };
}

async function read(url) {
  const { readFile } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:fs/promises");
  try {
    const { buffer, byteOffset, byteLength } = await readFile(url);
    return { bytes: new Uint8Array(buffer, byteOffset, byteLength) };
  } catch (error) {
    if (error.code === "ENOENT") return { missing: ABSENT };
    throw error;
  }
}
