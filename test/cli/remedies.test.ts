/** Every command that a refusal prints works: an admin who runs all of them has the manifest accepted. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { JsonObject } from "../../src/runtime/json.ts";
import { startLab } from "./lab-service.ts";
import { wordsOf } from "./printed-commands.ts";

const FLAVOR = "gpu/h100=nvidia.com/gpu:gpu=h100";
const NODES = [
  { name: "n", labels: { gpu: "h100" }, allocatable: { cpu: "64", memory: "256Gi", "nvidia.com/gpu": "8" } },
];
/** The command at the end of a line. */
const COMMAND = /with: gangway (.+)$/gm;

const container = (more: JsonObject = {}) => ({ name: "main", image: "busybox:1.36", ...more });
const secured = (securityContext: JsonObject) => ({ containers: [container({ securityContext })] });
const volume = (source: JsonObject, readOnly = false) => ({
  volumes: [{ name: "v", ...source }],
  containers: [container({ volumeMounts: [{ name: "v", mountPath: "/v", readOnly }] })],
});
const affinity = (namespaces: JsonObject) => ({
  podAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "zone", labelSelector: {}, ...namespaces }],
  },
});

/** Pods that a level refuses. */
const BEYOND_BASELINE: Readonly<Record<string, JsonObject>> = {
  capability: secured({ capabilities: { add: ["SYS_ADMIN"] } }),
  "capability-with-prefix": secured({ capabilities: { add: ["CAP_SYS_ADMIN", "cap_ipc_lock", "ALL"] } }),
  "capability-of-no-kernel": secured({ capabilities: { add: ["NO-SUCH'ONE"] } }),
  privileged: secured({ privileged: true }),
  "host-namespaces": { hostNetwork: true, hostPID: true, hostIPC: true },
  "host-port": { containers: [container({ ports: [{ containerPort: 80, hostPort: 8080 }] })] },
  "host-path-with-comma": volume({ hostPath: { path: "/data,set" } }),
  nfs: volume({ nfs: { server: "s", path: "/" } }),
  sysctls: { securityContext: { sysctls: [{ name: "kernel.msgmax", value: "1" }] } },
  "sysctl-with-slashes": { securityContext: { sysctls: [{ name: "net/ipv4/ip_forward", value: "1" }] } },
  seccomp: secured({ seccompProfile: { type: "Unconfined" } }),
  apparmor: secured({ appArmorProfile: { type: "Unconfined" } }),
  selinux: secured({ seLinuxOptions: { user: "a", role: "b", type: "c" } }),
  "probe-host": {
    containers: [container({ livenessProbe: { tcpSocket: { host: "h", port: 1 } } })],
  },
  tolerations: { tolerations: [{ operator: "Exists" }, { key: "node-role.kubernetes.io/master" }] },
  "priority-class": { priorityClassName: "system-node-critical" },
  "other-namespaces": { affinity: affinity({ namespaces: ["a"] }) },
  "resource-claims": { resourceClaims: [{ name: "gpu", resourceClaimName: "x" }] },
};

/** The level of a trial installation itself lets pods mount files of nodes. */
const BASELINE = ["--pod-security", "baseline"];

/** Pods that a level restricted, or a limit, refuses, and the flags by which the namespace was made. */
const OTHERS: Readonly<Record<string, { readonly flags: readonly string[]; readonly pod: JsonObject }>> = {
  "host-path": { flags: BASELINE, pod: volume({ hostPath: { path: "/data/./set/" } }) },
  "host-path-read-only": { flags: BASELINE, pod: volume({ hostPath: { path: "/data" } }, true) },
  "host-path-that-is-made": {
    flags: BASELINE,
    pod: volume({ hostPath: { path: "/data", type: "DirectoryOrCreate" } }, true),
  },
  restricted: { flags: ["--pod-security", "restricted"], pod: secured({ runAsUser: 0 }) },
  image: { flags: ["--only", "image=ghcr.io/acme/*,alpine"], pod: {} },
  "images-of-several-containers": {
    flags: ["--only", "image=alpine"],
    pod: { containers: [container(), { name: "b", image: `ghcr.io/x/y@sha256:${"a".repeat(64)}` }] },
  },
  account: { flags: ["--only", "service-account=trainer"], pod: {} },
  toleration: {
    flags: ["--only", "toleration=a"],
    pod: { tolerations: [{ key: "b", operator: "Equal", value: "c", effect: "NoSchedule" }, { key: "d" }] },
  },
  "every-toleration": {
    flags: ["--only", "toleration=a", "--allow", "toleration=*"],
    pod: { tolerations: [{ operator: "Exists" }] },
  },
  "node-selector": { flags: ["--only", "node-selector=zone"], pod: { nodeSelector: { pool: "a", disk: "ssd" } } },
  "node-affinity": {
    flags: ["--only", "node-selector=zone"],
    pod: {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  { key: "pool", operator: "In", values: ["a", "b"] },
                  { key: "gpu", operator: "Exists" },
                ],
              },
            ],
          },
        },
      },
    },
  },
  "class-of-a-limit": { flags: ["--only", "priority-class=low"], pod: { priorityClassName: "high" } },
};

suite("the commands that refusals print", () => {
  const files: Record<string, string> = {};
  let lab: Awaited<ReturnType<typeof startLab>>;

  before(async () => {
    lab = await startLab(NODES, files);
    await lab.ok(`cluster add lab --kubeconfig lab.kubeconfig --flavor ${FLAVOR}`);
  });
  after(() => lab.close());

  /** Submits a job of two such replica types, runs every command that its refusal prints, and submits again. */
  async function acceptedAfterAdvice(namespace: string, pod: JsonObject, queue = "default"): Promise<void> {
    const template = { spec: { containers: [container()], ...pod } };
    const replicaSpecs = { A: { replicas: 1, template }, B: { replicas: 1, template } };
    const runPolicy = { schedulingPolicy: { queue } };
    const manifest = { apiVersion: "gangway.dev/v1", kind: "Job", metadata: { name: "j", namespace } };
    files["j.json"] = JSON.stringify({ ...manifest, spec: { replicaSpecs, runPolicy } });
    const refused = await lab.gangway(["submit", "j.json", "--dry-run"]);
    const commands = [...refused.stderr.matchAll(COMMAND)].map(([, words = ""]) => words);
    assert.deepEqual([refused.exitCode, commands.length > 0], [3, true], refused.stderr);
    for (const words of commands) {
      const ran = await lab.gangway(wordsOf(words));
      assert.equal(ran.exitCode, 0, `gangway ${words}: ${ran.stderr}`);
    }
    const accepted = await lab.gangway(["submit", "j.json", "--dry-run"]);
    assert.equal(accepted.exitCode, 0, `${commands.join("\n")}\n${accepted.stderr}`);
  }

  for (const [name, pod] of Object.entries(BEYOND_BASELINE)) {
    test(`a level: ${name}`, () => acceptedAfterAdvice(name, pod));
  }
  for (const [name, { flags, pod }] of Object.entries(OTHERS)) {
    test(`a namespace with rules of its own: ${name}`, async () => {
      const ran = await lab.gangway(["namespace", "create", `own-${name}`, ...flags]);
      assert.equal(ran.exitCode, 0, ran.stderr);
      await acceptedAfterAdvice(`own-${name}`, pod);
    });
  }
  test("a queue that does not exist", () => acceptedAfterAdvice("default", {}, "nlp"));
});
