import { arrayAt, type JsonObject, objectAt } from "../../../runtime/json.ts";
import { formatQuantity, parseQuantity } from "../quantity.ts";
import type { Finding } from "./finding.ts";
import { inside, type PodPlace } from "./place.ts";

/** The amounts of a pod's own resources, as Kubernetes fills them in. */
type PodAmounts = {
  readonly limits: JsonObject;
  readonly requests: JsonObject;
  /** Amounts that are less than what the containers ask for. */
  readonly tooSmall: (place: PodPlace) => readonly Finding[];
};

type Sums = Readonly<Record<string, bigint>>;

const isOfPods = (name: string) => name === "cpu" || name === "memory" || name.startsWith("hugepages-");
const isHugePages = (name: string) => name.startsWith("hugepages-");

/**
 * Fills in the amounts that a pod's own resources omit, and compares them with those of its containers. Source:
 * `defaultPodRequests` and `validatePodResourceConsistency`.
 */
export function podAmounts(
  spec: JsonObject,
  own: { readonly limits: JsonObject; readonly requests: JsonObject },
): PodAmounts {
  const asked = aggregate(spec, (container) => requestsOf(container));
  const limited = aggregate(spec, (container) => readAmounts(objectAt(objectAt(container, "resources"), "limits")));
  const isSet = Object.keys(own.limits).length + Object.keys(own.requests).length > 0;
  const pages = Object.entries(limited).filter(([name]) => isHugePages(name) && !Object.hasOwn(own.requests, name));
  const limits = isSet ? { ...textsOf(pages), ...own.limits } : own.limits;
  const hasLimits = Object.keys(limits).length > 0;
  const sums = Object.entries(asked).filter(([name]) => isOfPods(name) && !isHugePages(name));
  const fromLimits = Object.entries(limits).filter(([name]) => isOfPods(name));
  const requests = hasLimits ? { ...Object.fromEntries(fromLimits), ...textsOf(sums), ...own.requests } : own.requests;
  const tooSmall = (place: PodPlace): readonly Finding[] => [
    ...lessThan(asked, { of: requests, place: inside(place, "requests"), what: "requests" }),
    ...lessThan(pick(limited, isHugePages), { of: limits, place: inside(place, "limits"), what: "limits" }),
    ...limitsAbove(spec, limits),
  ];
  return { limits, requests, tooSmall };
}

function lessThan(
  sums: Sums,
  { of, place, what }: { readonly of: JsonObject; readonly place: PodPlace; readonly what: string },
): readonly Finding[] {
  return Object.entries(sums)
    .filter(([name, sum]) => Object.hasOwn(of, name) && amount(of[name]) < sum)
    .map(([name, sum]) => {
      const detail = `must be greater than or equal to aggregate container ${what} of ${amountText(sum)}`;
      return { kind: "invalid", place: inside(place, { key: name }), value: String(of[name]), detail };
    });
}

function limitsAbove(spec: JsonObject, limits: JsonObject): readonly Finding[] {
  return arrayAt(spec, "containers").flatMap((container, index) => {
    const own = readAmounts(objectAt(objectAt(container, "resources"), "limits"));
    const place = inside(inside(inside({ up: null, step: "spec" }, "containers"), index), "resources");
    return Object.entries(own)
      .filter(([name, limit]) => Object.hasOwn(limits, name) && limit > amount(limits[name]))
      .map(([name, limit]): Finding => {
        const detail = `must be less than or equal to pod limits of ${String(limits[name])}`;
        const at = inside(inside(place, "limits"), { key: name });
        return { kind: "invalid", place: at, value: amountText(limit), detail };
      });
  });
}

/** What a pod needs at once: its containers and sidecars together, or one init container and the sidecars before it. */
function aggregate(spec: JsonObject, amountsOf: (container: unknown) => Sums): Sums {
  let sidecars: Sums = {};
  let most: Sums = {};
  for (const container of arrayAt(spec, "initContainers")) {
    const own = amountsOf(container);
    const isSidecar = objectAt({ container }, "container")["restartPolicy"] === "Always";
    most = largest(most, added(sidecars, own));
    if (isSidecar) sidecars = added(sidecars, own);
  }
  const together = arrayAt(spec, "containers").map(amountsOf).reduce(added, sidecars);
  return largest(together, most);
}

function requestsOf(container: unknown): Sums {
  const resources = objectAt(container, "resources");
  return readAmounts({ ...objectAt(resources, "limits"), ...objectAt(resources, "requests") });
}

function readAmounts(amounts: JsonObject): Sums {
  return Object.fromEntries(Object.entries(amounts).map(([name, value]) => [name, amount(value)]));
}

function amount(value: unknown): bigint {
  return parseQuantity(String(value ?? 0))?.nano ?? 0n;
}

function amountText(nano: bigint): string {
  return formatQuantity({ nano, format: "DecimalSI" });
}

function textsOf(sums: readonly (readonly [string, bigint])[]): JsonObject {
  return Object.fromEntries(sums.map(([name, nano]) => [name, amountText(nano)]));
}

function added(a: Sums, b: Sums): Sums {
  return combined(a, b, (x, y) => x + y);
}

function largest(a: Sums, b: Sums): Sums {
  return combined(a, b, (x, y) => {
    if (x > y) return x;
    return y;
  });
}

function combined(a: Sums, b: Sums, join: (x: bigint, y: bigint) => bigint): Sums {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Object.fromEntries([...names].map((name) => [name, join(a[name] ?? 0n, b[name] ?? 0n)]));
}

function pick(sums: Sums, takes: (name: string) => boolean): Sums {
  return Object.fromEntries(Object.entries(sums).filter(([name]) => takes(name)));
}
