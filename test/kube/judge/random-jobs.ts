/** Random jobs whose names, kinds and ports an API server takes, or refuses for one reason. */
import { type Kind, podKind } from "../../../src/core/kinds/plugin.ts";
import { OWN_ENTRY } from "../../../src/core/kinds/registry.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import type { JobInit } from "../../api/jobs.ts";
import { pick } from "../../support/random.ts";
import { NAMESPACE } from "./compare.ts";

type Random = () => number;

/** A job as it is sent, and the kind that an operator serves for it. */
export type RandomJob = {
  readonly request: { readonly job: JobInit };
  readonly kind: Kind;
};

const NAMES = ["train", "t", "a-b", "a--b", "llama-3-8b", "x".repeat(40), "x".repeat(47), "x".repeat(50)];
/** Each is wrong in one way, at least as a part of names of pods, services or config maps. */
const ODD_NAMES = [
  ...["7b-pretrain", "-a", "a-", "A", "a.b", "a_b", "a b", "a/b", "é", "a\n", "xn--a", "0", "1.2"],
  ...["x".repeat(51), "x".repeat(54), "x".repeat(55), "x".repeat(56), "x".repeat(63), "x".repeat(64)],
];
const PORT_NAMES = ["http", "a", "a-b", "master", "x".repeat(15), "1a", "p2p"];
const ODD_PORT_NAMES = ["", "A", "-a", "a-", "a--b", "1", "12-3", "a_b", "x".repeat(16), "a.b"];
const PORTS = [1, 80, 2222, 23_456, 65_535];
const ODD_PORTS = [0, -1, 65_536, 1.5, "80", null];
const PROTOCOLS = ["TCP", "UDP", "SCTP", "tcp", "HTTP"];
const REPLICAS = [1, 2, 11, 101];
/** The config map of an MPIJob names all of its workers, of which there are as many as a replica type may have. */
const MPI_REPLICAS = [1, 11, 10_000];
/** An odd value is as likely in each place. */
const ODD = 0.12;

function some<T>(random: Random, values: readonly T[], odd: readonly T[]): T {
  return pick(random, random() < ODD ? odd : values);
}

/** Our kinds whose replica types a job may name by itself: those of sets of jobs come from a manifest of groups. */
export const JUDGED_KINDS: readonly Kind[] = OWN_ENTRY.kinds.filter(
  ({ name }) => name !== "JobSet" && name !== "TrainJob",
);

/** A job of one of our kinds, or of one from outside with a port of its own. The first jobs have each of our kinds. */
export function randomJob(number: number, random: Random): RandomJob {
  const kind = JUDGED_KINDS[number] ?? (random() < 0.7 ? pick(random, JUDGED_KINDS) : outsideKind(random));
  const name = some(random, NAMES, ODD_NAMES);
  const metadata = random() < 0.8 ? { name, namespace: NAMESPACE } : { generateName: name, namespace: NAMESPACE };
  const roles = kind.roles ?? [{ name: pick(random, ["Worker", "worker-a", "W1"]), min: 1, max: null }];
  const replicaSpecs = Object.fromEntries(
    roles.map(({ name: role, min, max }) => {
      const replicas = max === 1 ? 1 : Math.max(min, pick(random, kind.name === "MPIJob" ? MPI_REPLICAS : REPLICAS));
      return [role, { replicas, template: randomTemplate(kind, random) }];
    }),
  );
  const slots = kind.name === "MPIJob" ? { kindSpec: { slotsPerWorker: pick(random, [1, 8]) } } : {};
  const job = { metadata, spec: { kind: kind.name, replicaSpecs, ...slots } } as JobInit;
  return { kind, request: { job } };
}

function outsideKind(random: Random): Kind {
  // Without a name, no template could declare the port.
  const odd = ODD_PORT_NAMES.filter((name) => name !== "");
  return podKind({
    name: "OutsideJob",
    description: "a test's",
    defaultPort: { name: some(random, PORT_NAMES, odd), number: Number(some(random, PORTS, ODD_PORTS)) },
    clusterSpec: () => ({ env: {}, initContainers: [] }),
  });
}

function randomTemplate(kind: Kind, random: Random): JsonObject {
  const main = { name: kind.defaultContainer ?? "main", image: "example.com/train:1" };
  // A port of the template would take the place of an odd one of the kind, so that no cluster sees that.
  const count = hasOddPort(kind) ? 0 : pick(random, [0, 0, 1, 1, 2]);
  const ports = Array.from({ length: count }, () => randomPort(kind, random));
  return { spec: { containers: [ports.length === 0 ? main : { ...main, ports }] } };
}

function hasOddPort({ defaultPort }: Kind): boolean {
  return defaultPort !== null && (ODD_PORT_NAMES.includes(defaultPort.name) || ODD_PORTS.includes(defaultPort.number));
}

/** Often of the name by which the service of the replica finds it. */
function randomPort({ defaultPort }: Kind, random: Random): JsonObject {
  const name = random() < 0.5 && defaultPort !== null ? defaultPort.name : some(random, PORT_NAMES, ODD_PORT_NAMES);
  const protocol = random() < 0.3 ? { protocol: pick(random, PROTOCOLS) } : {};
  return { name, containerPort: some<number | string | null>(random, PORTS, ODD_PORTS), ...protocol };
}
