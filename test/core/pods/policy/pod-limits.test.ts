import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { covers, readAllowance } from "../../../../src/core/pods/policy/allowances.ts";
import { readImage, readImagePattern, takesImage } from "../../../../src/core/pods/policy/image-pattern.ts";
import { beyondLimits, LIMIT_KINDS, type LimitKind, type PodLimits } from "../../../../src/core/pods/policy/limits.ts";
import { readPolicy } from "../../../../src/core/pods/policy/read-policy.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";

const images: Readonly<Record<string, { readonly takes: readonly string[]; readonly refuses: readonly string[] }>> = {
  "ghcr.io/acme/*": {
    takes: ["ghcr.io/acme/train", "ghcr.io/acme/a/b:v1", "ghcr.io/acme/a@sha256:0123", "GHCR.io/acme/a"],
    refuses: [
      "ghcr.io/acmeevil/train",
      "ghcr.io.evil.org/acme/train",
      "evil.org/ghcr.io/acme/train",
      "acme/train",
      "ghcr.io/acme/../evil/train",
      "ghcr.io/acme/*",
      " ghcr.io/acme/train",
      "ghcr.io/acme/train evil",
      "",
    ],
  },
  "busybox:1.36": {
    takes: ["busybox:1.36", "docker.io/library/busybox:1.36", "library/busybox:1.36", "index.docker.io/busybox:1.36"],
    refuses: ["busybox", "busybox:1.37", "evil/busybox:1.36", "busybox:1.36@sha256:0123", "evil.org/busybox:1.36"],
  },
  busybox: { takes: ["busybox", "busybox:1.36", "busybox@sha256:0123"], refuses: ["busybox2", "a/busybox"] },
  "pytorch/*:2.*": {
    takes: ["pytorch/pytorch:2.1", "docker.io/pytorch/pytorch:2.1-cuda"],
    refuses: ["pytorch/pytorch:1.9", "pytorch/pytorch", "pytorch/pytorch:2.1@sha256:0123", "x/pytorch/pytorch:2.1"],
  },
  "*.acme.com/*": {
    takes: ["a.acme.com/x", "a.b.acme.com/x"],
    refuses: ["acme.com.evil.org/x", "evil.org/a.acme.com/x", "a.acme.com:5000/x"],
  },
  "localhost:5000/x@sha256:0123": {
    takes: ["localhost:5000/x@sha256:0123", "localhost:5000/x:v1@sha256:0123"],
    refuses: ["localhost:5000/x", "localhost:5000/x@sha256:4567"],
  },
  "*": { takes: ["busybox", "ghcr.io/a/b:c", "a.b/c@sha256:0123"], refuses: ["", "not an image"] },
};
for (const [pattern, { takes, refuses }] of Object.entries(images)) {
  test(`the pattern ${pattern} takes images of its repositories alone`, () => {
    const read = readImagePattern(pattern);
    for (const image of takes) assert.ok(takesImage(read, readImage(image)), image);
    for (const image of refuses) assert.ok(!takesImage(read, readImage(image)), image);
  });
}

const main = { name: "main", image: "ghcr.io/acme/train" };
const spec = (members: JsonObject = {}): JsonObject => ({ containers: [main], ...members });
const required = (requirement: JsonObject) => ({
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [requirement] }] },
  },
});
const TERM = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]";

type LimitCase = {
  readonly limits: PodLimits;
  readonly spec: JsonObject;
  readonly fallbackAccount?: string;
  /** The paths of the values beyond the limits. */
  readonly beyond: readonly string[];
};
const cases: Readonly<Record<string, LimitCase>> = {
  "images of all kinds of containers and volumes are limited": {
    limits: { image: ["ghcr.io/acme/*"] },
    spec: spec({
      initContainers: [{ name: "a", image: "busybox" }],
      ephemeralContainers: [{ name: "b", image: "evil.org/x" }],
      volumes: [{ name: "v", image: { reference: "evil.org/y" } }],
    }),
    beyond: ["spec.initContainers[0].image", "spec.ephemeralContainers[0].image", "spec.volumes[0].image.reference"],
  },
  "both fields of the service account are limited": {
    limits: { "service-account": ["trainer"] },
    spec: spec({ serviceAccountName: "trainer", serviceAccount: "admin" }),
    beyond: ["spec.serviceAccount"],
  },
  "a pod that names no account uses the default one": {
    limits: { "service-account": ["trainer"] },
    spec: spec(),
    fallbackAccount: "default",
    beyond: ["spec.serviceAccountName"],
  },
  "an account that the platform gives is not limited": { limits: { "service-account": [] }, spec: spec(), beyond: [] },
  "a toleration needs an entry that is as wide": {
    limits: { toleration: ["gpu:NoSchedule", "team=nlp", "spot"] },
    spec: spec({
      tolerations: [
        { key: "gpu", operator: "Exists", effect: "NoSchedule" },
        { key: "gpu", operator: "Exists" },
        { key: "team", value: "nlp" },
        { key: "team", operator: "Exists" },
        { key: "spot", operator: "Exists", effect: "NoExecute" },
        { operator: "Exists" },
      ],
    }),
    beyond: ["spec.tolerations[1]", "spec.tolerations[3]", "spec.tolerations[5]"],
  },
  "only * takes a toleration of every taint": {
    limits: { toleration: ["*"] },
    spec: spec({ tolerations: [{ operator: "Exists" }, { key: "a", value: "b", effect: "NoSchedule" }] }),
    beyond: [],
  },
  "a priority class is limited, and none is none": {
    limits: { "priority-class": ["training-*"] },
    spec: spec({ priorityClassName: "urgent" }),
    beyond: ["spec.priorityClassName"],
  },
  "an empty limit takes nothing": {
    limits: { "priority-class": [] },
    spec: spec({ priorityClassName: "training-low" }),
    beyond: ["spec.priorityClassName"],
  },
  "a pod without a priority class is within every limit": {
    limits: { "priority-class": [] },
    spec: spec(),
    beyond: [],
  },
  "node selectors and affinity use only labels of the limit": {
    limits: { "node-selector": ["pool=a", "zone"] },
    spec: spec({
      nodeSelector: { pool: "a", "kubernetes.io/hostname": "n1", zone: "x" },
      affinity: required({ key: "pool", operator: "In", values: ["a", "b"] }),
    }),
    beyond: ['spec.nodeSelector["kubernetes.io/hostname"]', `${TERM}.matchExpressions[0]`],
  },
  "a label without its value needs an entry without a value": {
    limits: { "node-selector": ["pool=a"] },
    spec: spec({ affinity: required({ key: "pool", operator: "Exists" }) }),
    beyond: [`${TERM}.matchExpressions[0]`],
  },
  "preferred affinity is limited too": {
    limits: { "node-selector": ["pool=a"] },
    spec: spec({
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, preference: { matchExpressions: [{ key: "rack", operator: "In", values: ["1"] }] } },
          ],
        },
      },
    }),
    beyond: [
      "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0]",
    ],
  },
};
for (const [name, { limits, spec: of, fallbackAccount = null, beyond }] of Object.entries(cases)) {
  test(name, () => {
    const found = beyondLimits({ spec: of, fallbackAccount }, limits).map(({ path }) => path);
    assert.deepEqual(found, beyond);
    assert.deepEqual(beyondLimits({ spec: of, fallbackAccount }, {}), [], "no limit refuses nothing");
  });
}

test("an entry more in a limit never refuses more", () => {
  const entry = fc.constantFrom("*", "gpu", "gpu:NoSchedule", "pool=a", "ghcr.io/acme/*", "trainer", "busybox");
  const kinds = fc.constantFrom(...(Object.keys(LIMIT_KINDS) as LimitKind[]));
  const pods = fc.constantFrom(...Object.values(cases).map((one) => one.spec));
  fc.assert(
    fc.property(pods, kinds, fc.array(entry), entry, (of, kind, entries, more) => {
      const count = (values: readonly string[]) =>
        beyondLimits({ spec: of, fallbackAccount: "default" }, { [kind]: values }).length;
      assert.ok(count([...entries, more]) <= count(entries));
    }),
  );
});

const allowances: Readonly<Record<string, { readonly covers: readonly string[]; readonly not: readonly string[] }>> = {
  "host-path=/dev/shm": {
    covers: ["host-path=/dev/shm", "host-path=/dev/shm/a", "host-path=/dev/shm:ro", "host-path=//dev/./shm/"],
    not: ["host-path=/dev/shmx", "host-path=/dev", "host-path=/", "host-network"],
  },
  "host-path=/data:ro": { covers: ["host-path=/data/a:ro"], not: ["host-path=/data/a", "host-path=/"] },
  "host-path=/": { covers: ["host-path=/etc", "host-path=/:ro"], not: [] },
  "host-port=8000-9000": { covers: ["host-port=8000", "host-port=9000"], not: ["host-port=7999", "host-port=9001"] },
  "host-port=*": { covers: ["host-port=1"], not: [] },
  "capability=IPC_LOCK": { covers: ["capability=CAP_IPC_LOCK", "capability=ipc_lock"], not: ["capability=ALL"] },
  "capability=ALL": { covers: ["capability=SYS_ADMIN"], not: ["privileged"] },
  "sysctl=net.core.*": { covers: ["sysctl=net.core.somaxconn"], not: ["sysctl=net.corex", "sysctl=net.core"] },
  "volume=nfs": { covers: [], not: ["volume=csi"] },
  "toleration=*": { covers: ["toleration=node-role.kubernetes.io/master"], not: [] },
};
function read(text: string) {
  const outcome = readAllowance(text);
  assert.ok(outcome.kind === "read", text);
  return outcome.allowance;
}
for (const [text, { covers: covered, not }] of Object.entries(allowances)) {
  test(`the allowance ${text} covers what it names, and no more`, () => {
    for (const need of [text, ...covered]) assert.ok(covers(read(text), read(need)), need);
    for (const need of not) assert.ok(!covers(read(text), read(need)), need);
  });
}

const wrong = [
  "host-path",
  "host-path=",
  "host-path=relative",
  "host-path=/a/../b",
  "host-path=/a:rw",
  "host-path=/a,/b",
  "host-path=/a\nb",
  "host-network=yes",
  "host-port=0",
  "host-port=70000",
  "host-port=2-1",
  "capability=",
  "capability=A,B",
  "sysctl=*",
  "volume=a/b",
  "toString",
  "everything",
  "",
];
for (const text of wrong) {
  test(`an allowance that reads "${text}" is refused with the form that it must have`, () => {
    const outcome = readAllowance(text);
    assert.ok(outcome.kind === "refused" && outcome.message.length > 10, JSON.stringify(outcome));
  });
}

test("a policy is read in its normal form, or refused with every wrong entry", () => {
  const good = readPolicy({
    level: "baseline",
    allow: ["host-path=//dev/shm/", "host-path=/dev/shm", "host-ipc"],
    limits: { image: ["a/*", "a/*"], "priority-class": [] },
  });
  assert.deepEqual(good, {
    kind: "read",
    policy: {
      level: "baseline",
      allow: ["host-path=/dev/shm", "host-ipc"],
      limits: { image: ["a/*"], "priority-class": [] },
    },
  });
  const bad = readPolicy({
    level: null,
    allow: ["host-ipc", "host-path=x"],
    limits: { image: ["A B"], toleration: ["gpu:Never"], "node-selector": ["="], "service-account": ["a b"] },
  });
  assert.deepEqual(bad.kind === "refused" && bad.errors.map(({ path }) => path), [
    "allow[1]",
    "image[0]",
    "service-account[0]",
    "toleration[0]",
    "node-selector[0]",
  ]);
});
