/** How the page of the console is made and served. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { currentConsole } from "../../deploy/build-console.ts";
import { readPageFiles } from "../../src/api/web/page-files.ts";
import { send, startWebFixture } from "../api/web/http.ts";

/** What a browser loads before it shows anything. */
const FIRST_LOAD_BYTES_MAX = 200_000;
const HTML = { accept: "text/html,application/xhtml+xml" };

const folder = await currentConsole();
const page = () => readPageFiles(folder);

test("the first load is small, also where the browser takes gzip alone", async () => {
  const { document, assets } = await page();
  const files = [document, ...assets.values()];
  assert.ok(files.length >= 4);
  const gzip = files.reduce((sum, { body }) => sum + gzipSync(body).length, 0);
  const brotli = files.reduce((sum, file) => sum + file.brotli.length, 0);
  assert.ok(gzip <= FIRST_LOAD_BYTES_MAX, `${gzip} bytes with gzip`);
  assert.ok(brotli < gzip, `${brotli} bytes with brotli`);
});

test("the page needs no more than its own files: nothing inline, nothing of other hosts", async () => {
  const text = (await page()).document.body.toString();
  assert.doesNotMatch(text, /<script(?![^>]* src="\/assets\/)|<style| style=| on[a-z]+=|https?:/);
});

test("a view is the document, which is asked for each time", async (t) => {
  const { url } = await startWebFixture(t, { web: { page } });
  for (const path of ["/", "/jobs", "/jobs/default/llama?x=1", "/no-such-view"]) {
    const answer = await send(`${url}${path}`, { headers: HTML });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers["content-type"], "text/html; charset=utf-8");
    assert.equal(answer.headers["cache-control"], "no-cache");
    assert.match(String(answer.headers["content-security-policy"]), /default-src 'none'.*require-trusted-types-for/);
    assert.match(answer.body, /<div id="page">/);
  }
});

test("an asset is kept for ever, and is compressed for whom takes that", async (t) => {
  const { url } = await startWebFixture(t, { web: { page } });
  const name = readdirSync(join(folder, "assets")).find((one) => one.endsWith(".js")) ?? "";
  const plain = await send(`${url}/assets/${name}`);
  assert.equal(plain.headers["content-type"], "text/javascript; charset=utf-8");
  assert.equal(plain.headers["cache-control"], "public, max-age=31536000, immutable");
  assert.equal(plain.headers["content-encoding"], undefined);
  assert.equal(plain.body, readFileSync(join(folder, "assets", name), "utf8"));
  const compressed = await send(`${url}/assets/${name}`, { headers: { "accept-encoding": "gzip, deflate, br, zstd" } });
  assert.equal(compressed.headers["content-encoding"], "br");
  assert.ok(Number(compressed.headers["content-length"]) < Number(plain.headers["content-length"]) / 3);
});

test("other paths are not the page's", async (t) => {
  const { url } = await startWebFixture(t, { web: { page } });
  const paths = ["/assets/main.js", "/assets/../package.json", "/assets/manifest.json", "/jobs", "/index.html"];
  for (const path of paths) assert.equal((await send(`${url}${path}`)).status, 404, path);
  assert.equal((await send(`${url}/jobs`, { method: "POST", headers: HTML })).status, 405);
  assert.match((await send(`${url}/`)).body, /^This is Gangway/);
  assert.equal((await send(`${url}/openapi.json`)).headers["content-type"], "application/json");
});

test("a page that cannot be made says why, and RPCs are served", async (t) => {
  const absent = () => readPageFiles("/nowhere");
  const { url } = await startWebFixture(t, { web: { page: absent } });
  const answer = await send(`${url}/`, { headers: HTML });
  assert.equal(answer.status, 503);
  assert.match(answer.body, /RPCs are served as always. The reason: .*\/nowhere/);
});
