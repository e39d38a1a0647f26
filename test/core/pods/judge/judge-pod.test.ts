/** What an API server would refuse in a pod, by rule. `npm run judge` compares the rules with a real API server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { judgePod } from "../../../../src/core/pods/judge/judge-pod.ts";
import { findingErrors } from "../../../../src/core/pods/judge/words.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";

const main: JsonObject = { name: "main", image: "img" };
const withSpec = (spec: JsonObject): JsonObject => ({ metadata: { name: "p" }, spec: { containers: [main], ...spec } });
const withContainer = (more: JsonObject, spec: JsonObject = {}): JsonObject =>
  withSpec({ ...spec, containers: [{ ...main, ...more }] });
const withVolume = (source: JsonObject): JsonObject => withSpec({ volumes: [{ name: "v", ...source }] });
const at = "spec.containers[0]";

function errorsOf(pod: JsonObject): readonly string[] {
  return findingErrors(judgePod(pod)).map(({ path, message }) => `${path} ${message}`);
}

const CASES: Readonly<Record<string, readonly [pod: JsonObject, error: string]>> = {
  "a variable whose value is a number": [
    withContainer({ env: [{ name: "EPOCHS", value: 3 }] }),
    `${at}.env[0].value is 3: must be text, so write "3" in quotes`,
  ],
  "a variable with a name of other characters": [
    withContainer({ env: [{ name: "A=B", value: "x" }] }),
    `${at}.env[0].name is "A=B": must be printable ASCII characters other than '='`,
  ],
  "a variable with a value and a source": [
    withContainer({ env: [{ name: "A", value: "x", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }] }),
    `${at}.env[0].valueFrom is "": may not be specified when \`value\` is not empty`,
  ],
  "a variable from a field that pods do not have": [
    withContainer({ env: [{ name: "A", valueFrom: { fieldRef: { fieldPath: "spec.gpus" } } }] }),
    `${at}.env[0].valueFrom.fieldRef.fieldPath is "spec.gpus": must be one of metadata.name, metadata.namespace, ` +
      "metadata.uid, spec.nodeName, spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP, " +
      "status.podIPs",
  ],
  "a port beyond the last": [
    withContainer({ ports: [{ containerPort: 70_000 }] }),
    `${at}.ports[0].containerPort is 70000: must be between 1 and 65535, inclusive`,
  ],
  "a policy in lower case": [
    withContainer({ imagePullPolicy: "always" }),
    `${at}.imagePullPolicy is "always": must be Always, IfNotPresent or Never`,
  ],
  "a volume with two sources": [
    withVolume({ emptyDir: {}, hostPath: { path: "/x" } }),
    "spec.volumes[0].hostPath is not allowed: may not specify more than 1 volume type",
  ],
  "two mounts at one path": [
    withContainer(
      {
        volumeMounts: [
          { name: "v", mountPath: "/v" },
          { name: "v", mountPath: "/v" },
        ],
      },
      { volumes: [{ name: "v" }] },
    ),
    `${at}.volumeMounts[1].mountPath is "/v": must be unique: another item of the list has this path`,
  ],
  "a value of a label that is too long": [
    { ...withSpec({}), metadata: { name: "p", labels: { a: "x".repeat(64) } } },
    `metadata.labels.a is "${"x".repeat(64)}": must be at most 63 letters, digits, '-', '_' and '.', ` +
      "with a letter or digit at both ends, or empty",
  ],
  "a toleration without key and operator": [
    withSpec({ tolerations: [{ effect: "NoSchedule" }] }),
    'spec.tolerations[0].operator is "": operator must be Exists when `key` is empty, which means ' +
      '"match all values and all keys"',
  ],
  "a negative user": [
    withSpec({ securityContext: { runAsUser: -1 } }),
    "spec.securityContext.runAsUser is -1: must be between 0 and 2147483647, inclusive",
  ],
  "a request above its limit": [
    withContainer({ resources: { limits: { memory: "1Gi" }, requests: { memory: "2Gi" } } }),
    `${at}.resources.requests.memory is "2Gi": must be at most the limit, 1Gi`,
  ],
  "a device without a limit": [
    withContainer({ resources: { requests: { "nvidia.com/gpu": "1" } } }),
    `${at}.resources.requests["nvidia.com/gpu"] is required: must have a limit of the same amount`,
  ],
  "half a huge page": [
    withContainer({ resources: { limits: { "hugepages-2Mi": "1Mi", cpu: "1" } } }),
    `${at}.resources.limits.hugepages-2Mi is "1Mi": must be a whole number of pages of 2Mi`,
  ],
  "a pod that asks for less than its containers": [
    withContainer({ resources: { requests: { cpu: "2" } } }, { resources: { requests: { cpu: "1" } } }),
    'spec.resources.requests.cpu is "1": must be greater than or equal to aggregate container requests of 2',
  ],
  "a port of the node that differs under hostNetwork": [
    withContainer({ ports: [{ containerPort: 80, hostPort: 81 }] }, { hostNetwork: true }),
    `${at}.ports[0].hostPort is 81: must match \`containerPort\` when \`hostNetwork\` is true`,
  ],
  "a probe with two handlers": [
    withContainer({ livenessProbe: { exec: { command: ["a"] }, tcpSocket: { port: 80 } } }),
    `${at}.livenessProbe.tcpSocket is not allowed: may not specify more than 1 handler type`,
  ],
  "a probe of an init container that ends": [
    withSpec({ initContainers: [{ name: "i", image: "x", livenessProbe: { tcpSocket: { port: 80 } } }] }),
    "spec.initContainers[0].livenessProbe is not allowed: " +
      "may not be set for init containers without restartPolicy=Always",
  ],
  "a spread over nothing": [
    withSpec({ topologySpreadConstraints: [{ maxSkew: 0, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" }] }),
    "spec.topologySpreadConstraints[0].maxSkew is 0: must be greater than zero",
  ],
  "an affinity without values": [
    withSpec({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: "a", operator: "In" }] }],
          },
        },
      },
    }),
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]." +
      "matchExpressions[0].values is required: must be specified when `operator` is 'In' or 'NotIn'",
  ],
  "a priority without its class": [
    withSpec({ priority: 1000 }),
    "spec.priority is not allowed: name a priorityClassName, whose value the pod gets",
  ],
  "an address with a leading zero": [
    withSpec({ hostAliases: [{ ip: "010.0.0.1", hostnames: ["a"] }] }),
    'spec.hostAliases[0].ip is "010.0.0.1": must be an IP address such as 10.9.8.7 or 2001:db8::ffff',
  ],
  "a mode of a file that is written in decimals": [
    withVolume({ secret: { secretName: "s", defaultMode: 600 } }),
    "spec.volumes[0].secret.defaultMode is 600: must be from 0 to 511, which is 0777 in octal",
  ],
  "a claim of devices that the pod does not have": [
    withContainer({ resources: { claims: [{ name: "gpus" }] } }),
    `${at}.resources.claims[0] is "gpus": must be one of the names in pod.spec.resourceClaims which is empty`,
  ],
};
for (const [name, [pod, error]] of Object.entries(CASES)) {
  test(`refused: ${name}`, () => assert.deepEqual(errorsOf(pod), [error]));
}

test("null is as absent: no member of a pod that Kubernetes reads as absent is refused", () => {
  const nothing = {
    env: null,
    ports: null,
    resources: { limits: null, claims: null },
    livenessProbe: null,
    lifecycle: null,
  };
  assert.deepEqual(errorsOf(withContainer(nothing, { affinity: null, volumes: null, nodeSelector: { a: null } })), []);
});

test("a pod with 10,000 errors has 100 of them, and how many more there are", () => {
  const env = Array.from({ length: 10_000 }, () => ({ name: "A", value: 3 }));
  const errors = errorsOf(withContainer({ env }));
  assert.equal(errors.length, 101);
  assert.equal(errors.at(-1)?.trim(), "and 9,900 more");
});
