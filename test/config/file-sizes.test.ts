/** Every file that an operator or a user names has a size limit, and a file beyond it is named with both sizes. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readLocalFile } from "../../src/adapters/cluster/kubeconfig-files.ts";
import { createPluginHost } from "../../src/adapters/plugins/plugin-host.ts";
import { configFileAt } from "../../src/cli/auth/config-file.ts";
import { openTextEditor } from "../../src/cli/shell/text-editor.ts";
import { startProgram } from "../../src/cli/tokens/child-program.ts";
import { followSettings } from "../../src/compose/follow-settings.ts";
import { readConfig } from "../../src/config/config.ts";
import { serviceKind } from "../../src/core/kinds/plugin.ts";
import { kindsWith } from "../support/kinds.ts";

const MIB = 1024 * 1024;
const directory = mkdtempSync(join(tmpdir(), "gangway-sizes-"));
after(() => rmSync(directory, { recursive: true }));

/** Makes a file that begins with this text and has so many bytes, which take no room on the disk. */
function fileOf(bytes: number, text = ""): string {
  const path = join(directory, `of-${bytes}-bytes`);
  writeFileSync(path, text);
  truncateSync(path, bytes);
  return path;
}

const redis = { REDIS_URL: "rediss://127.0.0.1:1" };
const settings: readonly { readonly name: string; readonly set: (file: string) => Readonly<Record<string, string>> }[] =
  [
    { name: "GANGWAY_POD_CONFIG", set: (file) => ({ GANGWAY_POD_CONFIG: file }) },
    { name: "GANGWAY_AUTHENTICATION_FILE", set: (file) => ({ GANGWAY_AUTHENTICATION_FILE: file }) },
    { name: "GANGWAY_ACCESS_FILE", set: (file) => ({ GANGWAY_ACCESS_FILE: file }) },
    { name: "GANGWAY_LIMITS_FILE", set: (file) => ({ GANGWAY_LIMITS_FILE: file }) },
    { name: "GANGWAY_CREDENTIALS_KEYS_FILE", set: (file) => ({ GANGWAY_CREDENTIALS_KEYS_FILE: file }) },
    { name: "GANGWAY_TLS_", set: (file) => ({ GANGWAY_TLS_CERT_FILE: file, GANGWAY_TLS_KEY_FILE: file }) },
    { name: "REDIS_CA_FILE", set: (file) => ({ ...redis, REDIS_CA_FILE: file }) },
    { name: "REDIS_CERT_FILE", set: (file) => ({ ...redis, REDIS_CERT_FILE: file, REDIS_KEY_FILE: file }) },
  ];

for (const { name, set } of settings) {
  test(`the start refuses too large a file of ${name}`, () => {
    const file = fileOf(MIB + 1);
    const says = new RegExp(`${name}.*${file} has ${MIB + 1} bytes; at most ${MIB} are allowed`);
    assert.throws(() => readConfig(directory, set(file)), says);
  });
}

test("a file that is followed keeps its value when it grows beyond the limit", async () => {
  const path = join(directory, "followed.yaml");
  writeFileSync(path, "12345");
  const errors: string[] = [];
  const ended = new AbortController();
  const clock = {
    sleep: async () => {
      if (errors.length > 0) ended.abort();
    },
  };
  const ports = {
    clock,
    onRead: () => assert.fail("it was read"),
    onError: (error: unknown) => errors.push(`${error}`),
  };
  const followed = followSettings({ path, text: "12345", value: 5, parse: (text) => text.length }, 0, ports);
  truncateSync(path, MIB + 1);
  await followed.run(ended.signal);
  assert.equal(followed.now(), 5);
  assert.match(errors[0] ?? "", new RegExp(`followed.yaml has ${MIB + 1} bytes; at most ${MIB} are allowed`));
});

test("a kubeconfig, and each file that it names, has at most 64 KiB", async () => {
  assert.equal((await readLocalFile(fileOf(65_536))).length, 65_536);
  await assert.rejects(readLocalFile(fileOf(65_537)), /has 65537 bytes; at most 65536 are allowed/);
});

test("the file of contexts has at most 1 MiB", async () => {
  await assert.rejects(
    configFileAt(fileOf(MIB + 1)).read(),
    new RegExp(`cannot be read: .* has ${MIB + 1} bytes; at most ${MIB} are allowed`),
  );
});

test("the text that an editor leaves has at most the size of a request", async () => {
  const editor = await openTextEditor("job.yaml", {
    command: `truncate -s ${16 * MIB + 1}`,
    startProgram: (argv, onFailure) => startProgram(argv, { PATH: process.env["PATH"] }, onFailure),
    takeSignals: () => () => {},
  });
  const reason = `${editor.path} has ${16 * MIB + 1} bytes; at most ${16 * MIB} are allowed`;
  assert.deepEqual(await editor.edit(""), { kind: "failed", reason });
  await editor.remove();
});

test("a secret of a plugin has at most 1 MiB, and the error does not tell where it is", async () => {
  const kinds = kindsWith({
    id: "a",
    kinds: [serviceKind({ name: "AJob", description: "" })],
    load: () => assert.fail(),
  });
  const host = createPluginHost({ kinds, secretsDirectory: directory, wakeJob: () => undefined, tokens: null });
  fileOf(MIB + 1);
  const tooLarge = { message: `the secret of-${MIB + 1}-bytes has more than ${MIB} bytes` };
  await assert.rejects(host.secrets.get(`of-${MIB + 1}-bytes`), tooLarge);
  await assert.rejects(host.secrets.get("none"), /there is no secret none/);
  assert.equal((await host.secrets.get("of-65536-bytes")).length, 65_536);
});
