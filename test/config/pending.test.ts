import assert from "node:assert/strict";
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
