/** Changes a template in one place or two, at random from a seed: types, enums, names, ranges, duplicates, unions. */
import { type MemberType, membersOf, TEMPLATE_TYPE } from "../../../src/core/pods/judge/pod-types.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../src/runtime/json.ts";
import { pick } from "../../support/random.ts";
import { sample, someNumber, someText } from "./samples.ts";

type Random = () => number;

/** A value inside a template that can be changed, with its type as Kubernetes has it. */
type Spot = {
  readonly path: string;
  readonly value: Json;
  readonly type: MemberType;
  readonly set: (value: Json | undefined) => void;
  /** The list or object that holds it. */
  readonly holder: Json[] | Record<string, Json | undefined>;
};

/** A changed copy of a template, and what was changed. */
export function mutated(
  template: JsonObject,
  random: Random,
): { readonly template: JsonObject; readonly what: string } {
  const copy = structuredClone(template) as Record<string, Json | undefined>;
  const said: string[] = [];
  for (let left = random() < 0.7 ? 1 : 2; left > 0; left--) {
    const spots = spotsOf(copy, { form: "object", name: TEMPLATE_TYPE }, "");
    if (spots.length === 0) break;
    const spot = pick(random, spots);
    said.push(`${spot.path}: ${changed(spot, random)}`);
  }
  return { template: copy, what: said.join("; ") };
}

function spotsOf(value: Json, type: MemberType, path: string): readonly Spot[] {
  if (isJsonObject(value)) {
    const object = value as Record<string, Json | undefined>;
    return Object.keys(object).flatMap((name) => {
      const of = type.form === "map" ? type.of : type.form === "object" ? membersOf(type.name).get(name) : undefined;
      const inner = object[name];
      if (of === undefined || inner === undefined) return [];
      const set = (next: Json | undefined) => {
        if (next === undefined) delete object[name];
        else object[name] = next;
      };
      const at = path === "" ? name : `${path}.${name}`;
      return [{ path: at, value: inner, type: of, set, holder: object }, ...spotsOf(inner, of, at)];
    });
  }
  if (!Array.isArray(value) || type.form !== "list") return [];
  const list = value as Json[];
  return list.flatMap((inner, index) => {
    const set = (next: Json | undefined) => {
      if (next === undefined) list.splice(index, 1);
      else list[index] = next;
    };
    const at = `${path}[${index}]`;
    return [{ path: at, value: inner, type: type.of, set, holder: list }, ...spotsOf(inner, type.of, at)];
  });
}

const OTHER_TYPES: readonly Json[] = ["text", 3, true, null, [], {}, ["a"], { a: "b" }, 1.5];

type Change = (spot: Spot, random: Random) => string | null;

const CHANGES: readonly Change[] = [
  ({ set }, random) => {
    const next = pick(random, OTHER_TYPES);
    set(structuredClone(next));
    return `type, ${JSON.stringify(next)}`;
  },
  ({ set }) => {
    set(undefined);
    return "deleted";
  },
  ({ value, set }, random) => {
    if (typeof value !== "string") return null;
    const next = (random() < 0.5 ? someText : (r: Random) => edited(value, r))(random);
    set(next);
    return `text, ${JSON.stringify(next.slice(0, 40))}`;
  },
  ({ value, set }, random) => {
    if (typeof value !== "number") return null;
    const next = someNumber(random);
    set(next);
    return `number, ${next}`;
  },
  ({ value, set, type }) => {
    if (type.form !== "scalar" || typeof value === "string" || typeof value === "number") return null;
    set(value !== true);
    return `flag, ${value !== true}`;
  },
  ({ holder, value }) => {
    if (!Array.isArray(holder)) return null;
    holder.push(structuredClone(value));
    return "duplicated";
  },
  ({ value, type }, random) => {
    if (type.form !== "object" || !isJsonObject(value)) return null;
    const [name, of] = pick(random, [...membersOf(type.name)]);
    (value as Record<string, Json | undefined>)[name] = sample(of, random);
    return `member ${name}`;
  },
  ({ value, type }, random) => {
    if (type.form !== "list" || !Array.isArray(value)) return null;
    (value as Json[]).push(sample(type.of, random));
    return "item";
  },
  ({ value, type }, random) => {
    if (type.form !== "map" || !isJsonObject(value)) return null;
    const key = someText(random);
    (value as Record<string, Json | undefined>)[key] = sample(type.of, random);
    return `entry ${JSON.stringify(key.slice(0, 40))}`;
  },
  ({ value }, random) => {
    if (!isJsonObject(value)) return null;
    (value as Record<string, Json | undefined>)["unheardOf"] = someText(random);
    return "unknown member";
  },
];

/** Tries changes until one is possible here. Every spot can be deleted. */
function changed(spot: Spot, random: Random): string {
  for (;;) {
    const what = pick(random, CHANGES)(spot, random);
    if (what !== null) return what;
  }
}

function edited(text: string, random: Random): string {
  const at = Math.floor(random() * (text.length + 1));
  const ways = [
    `${text.slice(0, at)}${pick(random, ["-", ".", "/", "_", "A", " ", "=", ":", "0"])}${text.slice(at)}`,
    text.slice(0, at) + text.slice(at + 1),
    text.toUpperCase(),
    text.toLowerCase(),
    text + text,
  ];
  return pick(random, ways);
}
