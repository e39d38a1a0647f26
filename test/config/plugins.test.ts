import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { loadKinds } from "../../src/adapters/plugins/load-kinds.ts";
import { createPluginHost } from "../../src/adapters/plugins/plugin-host.ts";
import { type PluginEntry, serviceKind } from "../../src/core/kinds/plugin.ts";
import { kindsWith } from "../support/kinds.ts";

const directory = mkdtempSync(join(tmpdir(), "gangway-plugins-"));
after(() => rmSync(directory, { recursive: true }));

const modules: Record<string, { readonly text: string; readonly says: RegExp }> = {
  "that never ends": {
    text: "await new Promise(() => {}); export const plugins = [];",
    says: /names \.\/\d+\.mjs, which cannot be loaded: it was not ready after 0\.05 s/,
  },
  "that exports none": { text: "export const plugins = [];", says: /whose list of plugins is empty/ },
  "that throws": { text: "throw new Error('no licence');", says: /which cannot be loaded: no licence$/ },
  "with a slip": { text: "\nundefined.x;", says: /reading 'x'\) \(\d+\.mjs:2:\d+\)$/ },
};
for (const [at, [name, { text, says }]] of Object.entries(modules).entries()) {
  test(`a module ${name} is refused with the reason`, async () => {
    writeFileSync(join(directory, `${at}.mjs`), text);
    await assert.rejects(loadKinds([`./${at}.mjs`], directory, name === "that never ends" ? 50 : undefined), says);
  });
}

test("a path that looks like a package is told how a path begins", async () => {
  await assert.rejects(
    loadKinds(["kinds/0.mjs"], directory),
    /Cannot find package .*; a path would begin with \.\/ or \/$/,
  );
});

const signal = () => new AbortController().signal;
const done = { id: "a", handle: () => assert.fail(), abort: async () => undefined, finalize: async () => undefined };

/** The host of a process without counters, with one plugin. */
function hostOf(load: NonNullable<PluginEntry["load"]>) {
  const kinds = kindsWith({ id: "a", kinds: [serviceKind({ name: "AJob", description: "" })], load });
  return createPluginHost({ kinds, secretsDirectory: null, wakeJob: () => undefined, tokens: null });
}

const loads: Record<string, { readonly load: NonNullable<PluginEntry["load"]>; readonly says: RegExp }> = {
  nothing: { load: () => undefined as never, says: /plugin a: load must return an object with id, handle/ },
  "half a plugin": {
    load: () => ({ ...done, abort: undefined as never }),
    says: /plugin a: load returned a plugin whose abort is not a function/,
  },
  "another's plugin": { load: () => ({ ...done, id: "b" }), says: /plugin a: load returned a plugin with the id b/ },
  "a length that no name fits in": {
    load: () => ({ ...done, properties: { generatedNameLengthMax: 8 } }),
    says: /plugin a: properties\.generatedNameLengthMax must be a whole number of at least 14/,
  },
  "a pool without a name": {
    load: async ({ registerResourceQuota }) => {
      await registerResourceQuota("", 2);
      return done;
    },
    says: /a pool's name must be like gpu\/h100/,
  },
  "a pool with half a token": {
    load: async ({ registerResourceQuota }) => {
      await registerResourceQuota("a:pool", 1.5);
      return done;
    },
    says: /the quota of pool a:pool must be a whole number of at least 0/,
  },
};
for (const [name, { load, says }] of Object.entries(loads)) {
  test(`a loader that gives ${name} is refused with the reason`, async () => {
    await assert.rejects(hostOf(load).pluginOf("AJob", signal()), says);
  });
}

test("a loader that hangs is begun anew by the next call, and one that has ended is not", async () => {
  let loads = 0;
  const host = hostOf(() => (++loads === 1 ? new Promise(() => undefined) : done));
  const cutOff = new AbortController();
  void host.pluginOf("AJob", cutOff.signal);
  cutOff.abort();
  const over = new AbortController();
  assert.equal(await host.pluginOf("AJob", over.signal), done);
  over.abort();
  assert.equal(await host.pluginOf("AJob", signal()), done);
  assert.equal(loads, 2);
});
