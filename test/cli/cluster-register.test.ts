import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "./harness.ts";

const files = { "east.yaml": "kind: Config" };

const mistakes: Record<string, { argv: readonly string[]; says: RegExp }> = {
  "no kubeconfig": { argv: ["east"], says: /give one of --kubeconfig, --secret and --server-file/ },
  "two kubeconfigs": {
    argv: ["east", "--kubeconfig", "east.yaml", "--server-file", "/etc/east.yaml"],
    says: /give one of --kubeconfig, --secret and --server-file/,
  },
  "a missing file": { argv: ["east", "--kubeconfig", "west.yaml"], says: /west\.yaml does not exist/ },
  "a flavor without a resource": {
    argv: ["east", "--kubeconfig", "east.yaml", "--flavor", "gpu/h100"],
    says: /POOL=RESOURCE:LABEL=VALUE/,
  },
  "a flavor with an invalid label": {
    argv: ["east", "--kubeconfig", "east.yaml", "--flavor", "gpu/h100=nvidia.com/gpu:h100"],
    says: /KEY=VALUE, not h100/,
  },
  "a level without a label": {
    argv: ["east", "--kubeconfig", "east.yaml", "--topology", "block=example.com/block,rack"],
    says: /LEVEL=LABEL,… from coarse to fine.*"rack" is not/s,
  },
  "levels of a flavor that it does not have": {
    argv: [
      "east",
      "--kubeconfig",
      "east.yaml",
      "--flavor",
      "gpu/h100=nvidia.com/gpu",
      "--flavor-topology",
      "gpu/a:none",
    ],
    says: /names gpu\/a, which is no flavor of the cluster; it has gpu\/h100/,
  },
  "an invalid label": {
    argv: ["east", "--kubeconfig", "east.yaml", "--label", "zone"],
    says: /KEY=VALUE, not zone/,
  },
};
for (const [name, { argv, says }] of Object.entries(mistakes)) {
  test(`adding a cluster with ${name} is a usage error, and nothing is sent`, async () => {
    const { exitCode, stderr } = await run(["cluster", "add", ...argv], { files, address: "127.0.0.1:1" });
    assert.equal(exitCode, 2);
    assert.match(stderr, says);
  });
}
