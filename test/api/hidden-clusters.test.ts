/** What a caller hears of a cluster that it may not see, in words about one that it may. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClusterAdmin } from "../../src/api/ports.ts";
import { CallError } from "../../src/cli/rpc/call-error.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import { describeUidRefusal } from "../../src/core/admin/cluster.ts";
import { ClusterService } from "../../src/gen/gangway/v1/cluster_service_pb.ts";
import { knownCallers } from "../support/known-callers.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { startFixture } from "./fixture.ts";
import { MemoryStore } from "./memory-store.ts";

const SAME = { kind: "sameCluster", uid: "u-1", as: "hub" } as const;
const PROBLEM = `cluster east ${describeUidRefusal(SAME)}`;
const finding = { severity: "ERROR", code: "SameCluster", message: PROBLEM } as const;

test("words about a cluster name no other cluster to who may not see that one", async (t) => {
  const known = await knownCallers(t);
  const access = memoryAccess({ enforces: true });
  const clusters: ClusterAdmin = {
    ...new MemoryStore().clusterAdmin,
    problemOf: () => PROBLEM,
    check: async () => ({ kubernetesVersion: "", clockSkewMs: null, uid: "u-1", findings: [finding] }),
    update: async () => SAME,
    remove: async () => ({ kind: "inUse", by: "cluster hub, whose kubeconfig is in a Secret there; update it" }),
  };
  const { authenticate, robots } = known;
  const { authorization, admin } = access;
  const { api, store } = await startFixture(t, { authenticate, robots, authorization, access: admin, clusters });
  const sent = { kubeconfig: { kind: "text", text: "kind: Config" }, context: "" } as const;
  await store.clusterAdmin.register({ name: "east", labels: {}, flavors: [] }, sent);
  const heardBy = async (name: string, ...seen: readonly string[]) => {
    const { subject, token } = await known.caller("oidc", name);
    const to = { kind: "subject", name: subject } as const;
    await access.bind({ to, role: "cluster-admin", scope: { kind: "cluster", name: "east" } });
    for (const one of seen) await access.bind({ to, role: "viewer", scope: { kind: "cluster", name: one } });
    const client = connect(api.address, new AbortController().signal, { tls: null, token: async () => token });
    t.after(() => client.close());
    const { getCluster, listClusters, checkCluster, updateCluster, deleteCluster } = ClusterService.method;
    const refused = async (call: Promise<unknown>) => {
      const error = await call.catch((caught: unknown) => caught);
      return error instanceof CallError ? error.details : assert.fail(String(error));
    };
    return [
      (await client.call(getCluster, { name: "east" })).cluster?.problem ?? "",
      (await client.call(listClusters, {})).clusters.find((one) => one.name === "east")?.problem ?? "",
      (await client.call(checkCluster, { name: "east" })).check?.findings[0]?.message ?? "",
      await refused(client.call(updateCluster, { cluster: { name: "east" } })),
      await refused(client.call(deleteCluster, { name: "east" })),
    ];
  };
  for (const words of await heardBy("ann", "hub")) assert.match(words, /hub/);
  for (const words of await heardBy("bob")) {
    assert.match(words, /another cluster/);
    assert.doesNotMatch(words, /hub/);
  }
});
