import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readConfig } from "../../src/config/config.ts";

const read = {
  "nothing gives Flyte's defaults": [{}, [180_000, 0, 180_000, 0]],
  "each can be set": [
    {
      GANGWAY_CREATE_CONTAINER_ERROR_GRACE_SECONDS: "1",
      GANGWAY_CREATE_CONTAINER_CONFIG_ERROR_GRACE_SECONDS: "2",
      GANGWAY_IMAGE_PULL_BACKOFF_GRACE_SECONDS: "0",
      GANGWAY_POD_PENDING_TIMEOUT_SECONDS: "600",
    },
    [1_000, 2_000, 0, 600_000],
  ],
} as const;
for (const [name, [env, expected]] of Object.entries(read)) {
  test(name, () => {
    const { pending } = readConfig("/tmp", env);
    const found = [
      pending.createContainerErrorGraceMs,
      pending.createContainerConfigErrorGraceMs,
      pending.imagePullBackoffGraceMs,
      pending.podPendingTimeoutMs,
    ];
    assert.deepEqual(found, expected);
  });
}

for (const value of ["-1", "3m", "86401", "1.5"]) {
  test(`a grace of ${value} is refused by its name`, () => {
    assert.throws(
      () => readConfig("/tmp", { GANGWAY_IMAGE_PULL_BACKOFF_GRACE_SECONDS: value }),
      new Error(`GANGWAY_IMAGE_PULL_BACKOFF_GRACE_SECONDS is "${value}"; allowed are 0 to 86400`),
    );
  });
}

test("Flyte's words in the file of pod settings count where no variable is set", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gangway-pending-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "k8s.yaml");
  writeFileSync(file, "plugins: { k8s: { image-pull-backoff-grace-period: 5m0s, pod-pending-timeout: 1h } }");
  const env = { GANGWAY_POD_CONFIG: file, GANGWAY_POD_PENDING_TIMEOUT_SECONDS: "60" };
  assert.deepEqual(readConfig("/tmp", env).pending, {
    createContainerErrorGraceMs: 180_000,
    createContainerConfigErrorGraceMs: 0,
    imagePullBackoffGraceMs: 300_000,
    podPendingTimeoutMs: 60_000,
  });
});

test("the places of objects are read from their file, and a wrong one is refused by its name", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gangway-places-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "stores.yaml");
  const env = { GANGWAY_OBJECT_STORES: file };
  assert.deepEqual(readConfig("/tmp", {}).objectPlaces, []);
  writeFileSync(file, "stores: [{ url: 's3://bucket/', namespaces: [team] }]");
  assert.deepEqual(
    readConfig("/tmp", env).objectPlaces.map(({ url, namespaces }) => [url, namespaces]),
    [["s3://bucket/", ["team"]]],
  );
  writeFileSync(file, "stores: [{ url: 'ftp://bucket/' }]");
  const refusal = /^Error: GANGWAY_OBJECT_STORES names .*, where stores\[0\]\.url is "ftp:/;
  assert.throws(() => readConfig("/tmp", env), refusal);
});
