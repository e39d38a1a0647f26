import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfig } from "../../src/config/config.ts";

const DEFAULTS = { init: "busybox:1.36", kubectl: "kubeflow/kubectl-delivery:latest" };
const digest = `sha256:${"0123456789abcdef".repeat(4)}`;

const good: Record<string, { env: Record<string, string>; images: object }> = {
  "nothing is said": { env: {}, images: DEFAULTS },
  "an empty value says nothing": { env: { GANGWAY_INIT_IMAGE: "" }, images: DEFAULTS },
  "a mirror with a port": {
    env: { GANGWAY_INIT_IMAGE: "mirror.example:5000/library/busybox:1.36" },
    images: { ...DEFAULTS, init: "mirror.example:5000/library/busybox:1.36" },
  },
  "a digest": {
    env: { GANGWAY_KUBECTL_IMAGE: `tools/kubectl_all--in-one@${digest}` },
    images: { ...DEFAULTS, kubectl: `tools/kubectl_all--in-one@${digest}` },
  },
};
for (const [name, { env, images }] of Object.entries(good)) {
  test(`images: ${name}`, () => assert.deepEqual(readConfig("/", env).images, images));
}

for (const image of ["busy box", "BusyBox", "busybox:", "https://mirror.example/busybox", "busybox@sha256:12"]) {
  test(`"${image}" is no image`, () => {
    assert.throws(() => readConfig("/", { GANGWAY_KUBECTL_IMAGE: image }), {
      message:
        `GANGWAY_KUBECTL_IMAGE is "${image}"; ` +
        "allowed is an image such as registry.example:5000/tools/kubectl:1.36",
    });
  });
}
