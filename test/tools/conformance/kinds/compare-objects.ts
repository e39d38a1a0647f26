/** Compares the objects that a job has beside its pods: services, config maps, secrets and volume claims. */
import {
  arrayAt,
  canonicalJson,
  type Json,
  type JsonObject,
  objectAt,
  stringAt,
  stringMapAt,
} from "../../../../src/runtime/json.ts";
import { differing, foreignTexts } from "./compare.ts";

/** A config map of Trainer: Gangway's jobs keep what their runtime was themselves. */
const SNAPSHOT = /-runtime-snapshot$/;
/** Keys that Gangway makes have a name of their own for each admission. */
const KEYS = /^mpi-ssh-auth-/;

/** Lists that a state lacks are as they were before, so they are not compared. */
export function compareObjects(expected: JsonObject, found: readonly JsonObject[]): readonly string[] {
  return Object.entries(TOLD).flatMap(([list, { kind, expected: wanted, found: made }]) => {
    if (expected[list] === undefined) return [];
    const objects = found.filter((object) => object["kind"] === kind);
    const told = arrayAt(expected, list).map((one) => wanted(objectAt({ one }, "one")));
    return differing(
      list,
      told.filter((text) => text !== ""),
      objects.map(made),
    );
  });
}

type Told = {
  readonly kind: string;
  readonly expected: (object: JsonObject) => string;
  readonly found: (object: JsonObject) => string;
};

const TOLD: Readonly<Record<string, Told>> = {
  services: {
    kind: "Service",
    expected: (service) => serviceText(nameIn(service), service, service["headless"] === true),
    found: (service) => {
      const spec = objectAt(service, "spec");
      return serviceText(nameIn(objectAt(service, "metadata")), spec, spec["clusterIP"] === "None");
    },
  },
  configMaps: {
    kind: "ConfigMap",
    expected: (map) => (SNAPSHOT.test(nameIn(map)) ? "" : `${nameIn(map)} ${canonicalJson(objectAt(map, "data"))}`),
    found: (map) => `${nameIn(objectAt(map, "metadata"))} ${canonicalJson(objectAt(map, "data"))}`,
  },
  secrets: {
    kind: "Secret",
    expected: (secret) => stringAt(secret, "type") ?? "",
    found: (secret) => (KEYS.test(nameIn(objectAt(secret, "metadata"))) ? (stringAt(secret, "type") ?? "") : "another"),
  },
  claims: {
    kind: "PersistentVolumeClaim",
    expected: (claim) => `${nameIn(claim)} ${canonicalJson(objectAt(claim, "spec"))}`,
    found: (claim) => `${nameIn(objectAt(claim, "metadata"))} ${canonicalJson(objectAt(claim, "spec"))}`,
  },
};

function nameIn(of: Json): string {
  return stringAt(of, "name") ?? "";
}

/** The selectors of Gangway's services have its own labels too. */
function serviceText(name: string, spec: JsonObject, isHeadless: boolean): string {
  const selector = canonicalJson(foreignTexts(stringMapAt(spec, "selector")));
  const all = spec["publishNotReadyAddresses"] === true;
  return [name, selector, isHeadless ? "headless" : "", all ? "with pods that are not ready" : ""].join(" ");
}
