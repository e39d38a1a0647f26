import assert from "node:assert/strict";
import { test } from "node:test";
import { describeUidRefusal, judgeSource, secretText } from "../../../src/core/admin/cluster.ts";
import { withoutHiddenClusters } from "../../../src/core/admin/hidden-clusters.ts";

const secret = secretText({ cluster: "hub.x", namespace: "fleet", name: "kube", key: "value" });
const same = describeUidRefusal({ kind: "sameCluster", uid: "u-1", as: "hub.x" });
const known = (name: string, source: string | null) => ({ name, simulated: false, source });
const chained = judgeSource({ cluster: "west", source: "east" }, [known("east", null), known("hub.x", "west")]);
assert.ok(chained?.kind === "refusedSource");

/** Words that name the cluster hub.x, and the same words for a caller that does not see it. */
const cases: Record<string, string> = {
  [`cluster west ${same}`]:
    "cluster west is the same Kubernetes cluster as another cluster: the uid of its namespace kube-system is u-1. " +
    "A cluster has one name: use that one, or remove one of the two",
  [`${secret} has no key value`]: "the Secret of another cluster has no key value",
  [`${secret}: users is missing`]: "the Secret of another cluster: users is missing",
  [`cluster east ${chained.why}`]:
    "cluster east cannot serve west, which has the Secret with the kubeconfig of another cluster",
  "cluster hub.x, whose kubeconfig is in a Secret there; update or remove that cluster first":
    "another cluster, whose kubeconfig is in a Secret there; update or remove that cluster first",
};
for (const [words, hidden] of Object.entries(cases)) {
  test(`a cluster is shown to who may see it, and to nobody else: ${hidden}`, () => {
    assert.ok(words.includes("hub.x"));
    assert.equal(
      withoutHiddenClusters(words, (name) => name === "hub.x"),
      words,
    );
    assert.equal(
      withoutHiddenClusters(words, () => false),
      hidden,
    );
  });
}
