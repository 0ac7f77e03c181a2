// Where the module and models are, on the web and in Node.

export const inNode = globalThis.process?.release?.name === "node";

/** The models in the package. */
export const SHIPPED = ["snips-small", "pos"];
const MODELS = new URL("./models/", import.meta.url);

/** A URL; relative ones begin at the page or, in Node, at the working directory. */
export async function resolve(url) {
  if (url instanceof URL) return url;
  if (!inNode) return new URL(url, globalThis.location.href);
  const { pathToFileURL } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:url");
  return new URL(url, pathToFileURL(`${process.cwd()}/`));
}

/** The URL of a model's folder: of one in the package, or one that a path or a URL names. */
export async function locate(source) {
  if (SHIPPED.includes(source)) return new URL(`${source}/`, MODELS);
  const text = String(source);
  if (!text.includes("/")) {
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
  for (const url of urls) {
    const bytes = await get(url);
    if (bytes) return bytes;
  }
  throw new Error(`${urls.join(", nor ")}: there is no such file`);
}

/** The bytes behind a URL; undefined if there are none. */
async function get(url) {
  if (inNode && url.protocol === "file:") return read(url);
  const response = await fetch(url);
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(`${url}: the server answered ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function read(url) {
  const { readFile } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:fs/promises");
  try {
    const { buffer, byteOffset, byteLength } = await readFile(url);
    return new Uint8Array(buffer, byteOffset, byteLength);
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
