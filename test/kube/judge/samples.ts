/** Values for the members of pods: some that Kubernetes allows, and some that it does not. */
import { type MemberType, membersOf } from "../../../src/core/pods/judge/pod-types.ts";
import type { Json, JsonObject } from "../../../src/runtime/json.ts";
import { pick } from "../../support/random.ts";

type Random = () => number;

/** Texts that are right somewhere, and texts that are wrong in one way. */
const TEXTS: readonly string[] = [
  ...[
    "",
    "a",
    "A",
    "1",
    "0",
    "-1",
    "a-b",
    "-a",
    "a-",
    "a.b",
    "a..b",
    "a_b",
    "a b",
    " a",
    "a/b",
    "/a",
    "/a/../b",
    "../a",
  ],
  ...[
    "..",
    ".",
    "..a",
    "a/",
    "/",
    "x".repeat(15),
    "x".repeat(16),
    "x".repeat(63),
    "x".repeat(64),
    "x".repeat(254),
    "é",
  ],
  ...["m", "100m", "1Gi", "-1Gi", "1.5", "1e3", "1n", "0.5Mi", "2Mi", "1k", "10Ti", "1Ki", "+1", "many", "1 Gi"],
  ...["Always", "always", "IfNotPresent", "Never", "OnFailure", "TCP", "UDP", "SCTP", "tcp", "HTTP", "HTTPS", "File"],
  ...["FallbackToLogsOnError", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None", "In", "NotIn", "Exists"],
  ...["DoesNotExist", "Gt", "Lt", "Equal", "NoSchedule", "PreferNoSchedule", "NoExecute", "DoNotSchedule"],
  ...["ScheduleAnyway", "Honor", "Ignore", "Localhost", "RuntimeDefault", "Unconfined", "Bidirectional", "Enabled"],
  ...[
    "HostToContainer",
    "IfPossible",
    "Disabled",
    "NotRequired",
    "RestartContainer",
    "Restart",
    "RestartAllContainers",
  ],
  ...["PreemptLowerPriority", "linux", "windows", "Unmasked", "OnRootMismatch", "Strict", "Merge", "Recursive"],
  ...["MountOption", "Directory", "Socket", "ReadWriteOnce", "ReadWriteOncePod", "Filesystem", "Block", "Managed"],
  ...["metadata.name", "metadata.labels", "metadata.labels['a']", "metadata.annotations['A/b']", "metadata.labels['']"],
  ...[
    "spec.nodeName",
    "status.podIP",
    "status.phase",
    "spec.host",
    "limits.cpu",
    "requests.memory",
    "requests.hugepages-2Mi",
  ],
  ...[
    "10.0.0.1",
    "010.0.0.1",
    "10.0.0",
    "::1",
    "::ffff:1.2.3.4",
    "2001:db8::1",
    "fe80::1%eth0",
    "1.2.3.4.5",
    "a=b",
    "a\tb",
  ],
  ...["example.com", "example.com/a", "Example.com/a", "example.com/", "/a/b", "example.com/a/b", "kubernetes.io/a"],
  ...["cpu", "memory", "ephemeral-storage", "storage", "hugepages-2Mi", "hugepages-", "nvidia.com/gpu", "requests.cpu"],
  ...["iqn.2001-04.com.example:storage", "iqn.x", "eui.0123456789abcdef", "naa.1", "host:1", "host:1,other:2", "host"],
  ...["kernel.shmmax", "net.core.somaxconn", "net/core.somaxconn", "fs.mqueue.msg_max", "Kernel.x", "v1", "v2", "data"],
  ...["work", "main", "gpus", "port", "http", "localhost/a", "runtime/default", "unconfined", "system-node-critical"],
  ...[
    "PersistentVolumeClaim",
    "https://a.b/c",
    "/subscriptions/a",
    "DOMAIN\\user",
    "a\\b\\c",
    "user:",
    "default",
    "CAP_SYS_ADMIN",
  ],
];

const NUMBERS: readonly number[] = [
  ...[0, 1, -1, 2, 3, 10, 100, 101, 255, 256, 420, 511, 512, 599, 600, 3600, 65535, 65536, 1.5, 0.1, 1e10, 2 ** 32],
  ...[2 ** 32 + 1, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 53, 2 ** 63, -(2 ** 63), 1e21],
];

export const someText = (random: Random): string => pick(random, TEXTS);
export const someNumber = (random: Random): number => pick(random, NUMBERS);

/** A value of a type. Objects get a few of their members. */
export function sample(type: MemberType, random: Random, depth = 0): Json {
  switch (type.form) {
    case "list":
      return Array.from({ length: Math.floor(random() * 3) }, () => sample(type.of, random, depth + 1));
    case "map":
      return Object.fromEntries(
        Array.from({ length: Math.floor(random() * 3) }, () => [someText(random), sample(type.of, random, depth + 1)]),
      );
    case "object":
      return sampleObject(type.name, random, depth);
    case "scalar":
      return sampleScalar(type.name, random);
  }
}

function sampleObject(type: string, random: Random, depth: number): JsonObject {
  const members = [...membersOf(type)];
  const count = depth > 3 ? 1 : Math.ceil(random() * 3);
  const chosen = Array.from({ length: count }, () => pick(random, members));
  return Object.fromEntries(chosen.map(([name, of]) => [name, sample(of, random, depth + 1)]));
}

function sampleScalar(name: string, random: Random): Json {
  if (name === "boolean") return random() < 0.5;
  if (name === "int32" || name === "int64") return someNumber(random);
  if (name === "quantity")
    return random() < 0.3 ? someNumber(random) : pick(random, ["1", "100m", "1Gi", "2Mi", "0", "-1", "x"]);
  return name === "intOrString" && random() < 0.5 ? someNumber(random) : someText(random);
}
