// Where Node finds the files of a model.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { test } from "node:test";

import { candidates, first, locate, resolve } from "../places.js";

const text = async (urls) => new TextDecoder().decode(await first(urls));

test("a path is taken as it is, whatever is in its names", async () => {
  const around = mkdtempSync(join(tmpdir(), "tapir-places-"));
  const folder = join(around, "a #1? 50%25 é");
  mkdirSync(folder);
  writeFileSync(join(folder, "config.json"), "mine");
  writeFileSync(join(around, "some.tapirvec"), "around");
  for (const path of [folder, `${folder}/`, `./${relative("", folder)}`]) {
    const url = await locate(path);
    assert.equal(await text(candidates("config.json", url)), "mine", path);
    assert.equal(await text(candidates("some.tapirvec", url)), "around", path);
  }
  assert.equal(await text([await resolve(join(folder, "config.json"))]), "mine");
  rmSync(around, { recursive: true });
});

test("the drives of Windows are no schemes, and its paths no names of models", async () => {
  for (const path of ["C:/models/mine", "C:\\models\\mine", "..\\mine"]) {
    assert.equal((await locate(path)).protocol, "file:", path);
  }
  await assert.rejects(locate("chess"), /chess: no model of this name is in the package/);
});

test("a URL stays what it is", async () => {
  assert.equal((await locate("https://example.org/a%20b")).href, "https://example.org/a%20b/");
  assert.equal((await locate(new URL("file:///a%20b/"))).href, "file:///a%20b/");
  assert.equal((await resolve("file:///a.tapirvec")).href, "file:///a.tapirvec");
});

test("what a server does not have is looked for in the next place, and a fault is said", async () => {
  const answers = {
    "/there": [200, "application/octet-stream", "bytes"],
    "/absent": [404, "text/plain", ""],
    "/gone": [410, "text/plain", ""],
    "/hidden": [403, "application/xml", "<Error><Code>AccessDenied</Code></Error>"], // as S3 does
    "/page": [200, "text/html; charset=utf-8", "<!doctype html>"], // as an application of one page does
    "/broken": [500, "text/plain", ""],
  };
  const server = createServer(({ url }, response) => {
    const [status, type, content] = answers[url];
    response.writeHead(status, { "content-type": type }).end(content);
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const at = (path) => new URL(path, `http://127.0.0.1:${server.address().port}/`);
  for (const path of ["absent", "gone", "hidden", "page"]) {
    assert.equal(await text([at(path), at("there")]), "bytes", path);
    await assert.rejects(first([at(path)]), new RegExp(`/${path}: .*there is no such file`));
  }
  await assert.rejects(first([at("broken"), at("there")]), /broken: the server answered 500/);
  await assert.rejects(first([at("hidden"), at("absent")]), /hidden: the server refuses it.*; .*absent: there is/);
  server.closeAllConnections();
  server.close();
});
