/** The rules for resources: of containers, and of whole pods. */
import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt, stringAt } from "../../../../runtime/json.ts";
import { formatQuantity, parseQuantity } from "../../quantity.ts";
import type { Finding, Findings } from "../finding.ts";
import { inside, type PodPlace } from "../place.ts";
import { podAmounts } from "../pod-amounts.ts";
import { checkText, type ObjectRule, type TypeRules } from "../rule.ts";
import { SYNTAX } from "../syntax.ts";
import type { WholePod } from "../whole-pod.ts";

const OF_CONTAINERS = ["cpu", "memory", "ephemeral-storage"];
const OF_PODS = ["cpu", "memory"];
const HUGE_PAGES = "hugepages-";
/** Kubernetes knows these names, but no container can have them. */
const OTHER_STANDARD: ReadonlySet<string> = new Set(
  `requests.cpu requests.memory requests.ephemeral-storage limits.cpu limits.memory limits.ephemeral-storage pods
  resourcequotas services replicationcontrollers secrets configmaps persistentvolumeclaims storage requests.storage
  services.nodeports services.loadbalancers`.split(/\s+/),
);
/** Kubernetes counts these in whole numbers. */
const WHOLE: ReadonlySet<string> = new Set(
  `pods resourcequotas services replicationcontrollers secrets configmaps persistentvolumeclaims services.nodeports
  services.loadbalancers`.split(/\s+/),
);
const NANO = 10n ** 9n;
const NANO_OF_MILLI = 10n ** 6n;

const isHugePages = (name: string) => name.startsWith(HUGE_PAGES);
const isNative = (name: string) => !name.includes("/") || name.includes("kubernetes.io/");

/** True for a resource of a device plugin: its name has a domain. Kubernetes never overcommits it. */
function isExtended(name: string): boolean {
  return !isNative(name) && !name.startsWith("requests.") && SYNTAX.labelKey.problems(`requests.${name}`).length === 0;
}

/** An amount in billionths, as Kubernetes stores it: whole thousandths, rounded up. */
export function amountOf(value: Json | undefined): bigint {
  const nano = parseQuantity(String(value ?? 0))?.nano ?? 0n;
  const rest = nano % NANO_OF_MILLI;
  if (rest === 0n) return nano;
  return rest > 0n ? nano - rest + NANO_OF_MILLI : nano - rest - NANO_OF_MILLI;
}

function quantityText(value: Json | undefined): string {
  const quantity = parseQuantity(String(value ?? 0));
  return quantity === null ? String(value) : formatQuantity({ ...quantity, nano: amountOf(value) });
}

type Named = { readonly name: string; readonly value: Json | undefined; readonly place: PodPlace };

/** Amounts that are surely whole and not negative, such as 8, 64Gi and 500M. */
const PLAIN_AMOUNT = /^\d{1,15}(?:Ki|Mi|Gi|Ti|k|M|G|T)?$/;

function judgeAmount({ name, value, place }: Named, findings: Findings): void {
  if (!isHugePages(name) && PLAIN_AMOUNT.test(String(value))) return;
  const amount = amountOf(value);
  const refuse = (detail: string, allowed: string) =>
    findings.add({ kind: "invalid", place, value: quantityText(value), detail, allowed });
  if (amount < 0n) refuse("must be greater than or equal to 0", "must not be negative");
  if ((WHOLE.has(name) || isExtended(name)) && amount % NANO !== 0n) {
    refuse("must be an integer", "must be a whole number");
  }
  if (!isHugePages(name) || isOfPages(amount, name.slice(HUGE_PAGES.length))) return;
  const detail = `${quantityText(value)} is not positive integer multiple of ${name}`;
  refuse(detail, `must be a whole number of pages of ${name.slice(HUGE_PAGES.length)}`);
}

function isOfPages(amount: bigint, size: string): boolean {
  const page = parseQuantity(size)?.nano ?? 0n;
  return page > 0n && page % NANO === 0n && roundedUp(amount) % (page / NANO) === 0n;
}

function roundedUp(nano: bigint): bigint {
  return nano % NANO > 0n ? nano / NANO + 1n : nano / NANO;
}

/** What is said about a name that no container can request. */
export const UNKNOWN_RESOURCE =
  "is not a resource of containers: must be cpu, memory, ephemeral-storage, hugepages-SIZE, " +
  "or a name with a domain such as nvidia.com/gpu";

function nameFindings({ name, place }: Named): readonly Finding[] {
  const at = (detail: string): Finding => ({ kind: "invalid", place, value: name, detail, allowed: UNKNOWN_RESOURCE });
  const problems = SYNTAX.labelKey.problems(name);
  if (problems.length > 0) return problems.map(at);
  if (name.includes("/")) {
    return isNative(name) || isExtended(name) ? [] : [at("doesn't follow extended resource name standard")];
  }
  if (OF_CONTAINERS.includes(name) || isHugePages(name)) return [];
  const isStandard = OTHER_STANDARD.has(name) || name.startsWith("requests.hugepages-");
  const unknown = isStandard ? [] : [at("must be a standard resource type or fully qualified")];
  return [...unknown, at("must be a standard resource for containers")];
}

function podNameFindings(named: Named): readonly Finding[] {
  const { name, place } = named;
  const problems = nameFindings(named).filter(({ detail }) => detail !== "must be a standard resource for containers");
  if (problems.length > 0) return problems;
  if (OF_PODS.includes(name) || isHugePages(name)) return [];
  const detail = 'supported values: "cpu", "hugepages-", "memory"';
  return [{ kind: "unsupported", place, value: name, detail, allowed: "must be cpu, memory or hugepages-SIZE" }];
}

type Amounts = { readonly limits: JsonObject; readonly requests: JsonObject };

function judgeRequirements(
  { limits, requests }: Amounts,
  place: PodPlace,
  { findings, names }: { readonly findings: Findings; readonly names: (named: Named) => readonly Finding[] },
): void {
  const entries = (list: "limits" | "requests", amounts: JsonObject): readonly Named[] =>
    Object.entries(amounts).map(([name, value]) => ({
      name,
      value,
      place: inside(inside(place, list), { key: name }),
    }));
  for (const named of [...entries("limits", limits), ...entries("requests", requests)]) {
    for (const finding of names(named)) findings.add(finding);
    judgeAmount(named, findings);
  }
  for (const named of entries("requests", requests)) judgeRequest(named, { limits, place, findings });
  const all = [...Object.keys(limits), ...Object.keys(requests)];
  if (!all.some(isHugePages) || all.some((name) => OF_PODS.includes(name))) return;
  findings.add({ kind: "forbidden", place, detail: "HugePages require cpu or memory" });
}

function judgeRequest(
  { name, value, place }: Named,
  of: { readonly limits: JsonObject; readonly place: PodPlace; readonly findings: Findings },
): void {
  const { limits, findings } = of;
  const isFixed = !isNative(name) || isHugePages(name);
  if (!Object.hasOwn(limits, name)) {
    if (!isFixed) return;
    const detail = "Limit must be set for non overcommitable resources";
    const allowed = "must have a limit of the same amount";
    findings.add({ kind: "required", place, field: inside(of.place, "limits"), detail, allowed });
    return;
  }
  const [request, limit] = [amountOf(value), amountOf(limits[name])];
  if (isFixed ? request === limit : request <= limit) return;
  const most = quantityText(limits[name]);
  const detail = `must be ${isFixed ? "equal to" : "less than or equal to"} ${name} limit of ${most}`;
  const allowed = `must be ${isFixed ? "equal to" : "at most"} the limit, ${most}`;
  findings.add({
    kind: "invalid",
    place,
    field: inside(of.place, "requests"),
    value: quantityText(value),
    detail,
    allowed,
  });
}

function amountsAt(resources: JsonObject): Amounts {
  return { limits: objectAt(resources, "limits"), requests: objectAt(resources, "requests") };
}

const REQUIREMENTS: ObjectRule = {
  says:
    "names must be cpu, memory, ephemeral-storage, hugepages-SIZE or a name with a domain; amounts must not be " +
    "negative, of devices whole, of huge pages whole pages; a request must be at most its limit, and of devices and " +
    "huge pages equal to it; huge pages need cpu or memory; claims must be among the pod's resourceClaims, each once",
  judge: (resources, place, { pod, findings }) => {
    // Those of a pod have a rule of their own.
    if (place?.up?.step === "spec") return;
    const { limits, requests } = amountsAt(resources);
    judgeRequirements({ limits, requests }, place, { findings, names: nameFindings });
    judgeClaims(resources, place, { pod, findings });
  },
};

function judgeClaims(
  resources: JsonObject,
  place: PodPlace,
  { pod, findings }: { readonly pod: WholePod; readonly findings: Findings },
): void {
  const seen: SeenClaims = { wholes: new Set(), parts: new Set() };
  for (const [index, claim] of arrayAt(resources, "claims").entries()) {
    const at = inside(inside(place, "claims"), index);
    const name = stringAt(claim, "name") ?? "";
    if (name === "") findings.add({ kind: "required", place: at, detail: "" });
    else {
      judgeClaim({ name, request: stringAt(claim, "request") ?? "" }, { at, seen, findings });
      if (!pod.claims.has(name)) findings.add(unknownClaim(at, name, pod.claims));
    }
  }
}

/** The claims that a container has as a whole, and the requests of claims, as `CLAIM/REQUEST` and `CLAIM/`. */
type SeenClaims = { readonly wholes: Set<string>; readonly parts: Set<string> };

function judgeClaim(
  { name, request }: { readonly name: string; readonly request: string },
  { at, seen, findings }: { readonly at: PodPlace; readonly seen: SeenClaims; readonly findings: Findings },
): void {
  const { wholes, parts } = seen;
  const key = request === "" ? name : `${name}/${request}`;
  const isWhole = wholes.has(name);
  if (isWhole || parts.has(request === "" ? `${name}/` : key)) {
    const allowed = "must be unique: another item of the list has this claim";
    findings.add({ kind: "duplicate", place: at, value: key, detail: "", allowed });
  }
  if (!isWhole && request !== "") checkText(SYNTAX.label, request, inside(at, "request"), findings);
  if (request === "") wholes.add(name);
  else parts.add(key).add(`${name}/`);
}

function unknownClaim(place: PodPlace, value: string, claims: ReadonlySet<string>): Finding {
  const rest = claims.size === 0 ? " which is empty" : `: ${[...claims].sort().join(", ")}`;
  const detail = `must be one of the names in pod.spec.resourceClaims${rest}`;
  return { kind: "notFound", place, value, detail };
}

/** The resources of the whole pod. Source: `validatePodResources`, on the amounts that Kubernetes fills in. */
export const POD_RESOURCES: ObjectRule = {
  says:
    "resources of the pod must be of cpu, memory and hugepages-SIZE, without claims, at least what its containers " +
    "request, and at most one limit of a container above it",
  judge: (spec, place, { pod, findings }) => {
    const own = spec["resources"];
    if (!isJsonObject(own)) return;
    const at = inside(place, "resources");
    if (pod.os === "windows") {
      findings.add({ kind: "forbidden", place: at, detail: "may not be set for a windows pod" });
      return;
    }
    if (Array.isArray(own["claims"])) {
      const detail = "claims may not be set for Resources at pod-level";
      findings.add({ kind: "forbidden", place: inside(at, "claims"), detail });
    }
    const amounts = podAmounts(spec, amountsAt(own));
    judgeRequirements(amounts, at, { findings, names: podNameFindings });
    for (const finding of amounts.tooSmall(at)) findings.add(finding);
  },
};

const OVERHEAD: ObjectRule = {
  says: "overhead must not be set without a runtimeClassName, whose class has it",
  judge: (spec, place, { findings }) => {
    if (!isJsonObject(spec["overhead"]) || typeof spec["runtimeClassName"] === "string") return;
    const detail = "Pod Overhead set without corresponding RuntimeClass defined Overhead";
    findings.add({ kind: "forbidden", place: inside(place, "overhead"), detail });
  },
};

export const RESOURCE_RULES: TypeRules = { ResourceRequirements: { whole: [REQUIREMENTS] } };
export const POD_RESOURCE_RULES: readonly ObjectRule[] = [POD_RESOURCES, OVERHEAD];
