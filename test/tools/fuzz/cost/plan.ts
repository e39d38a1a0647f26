/** Makes the inputs of a run, each from its seed and number alone. */
import { type DescMethod, fromBinary } from "@bufbuild/protobuf";
import { Chance } from "../chance.ts";
import { decode, encode } from "../plan.ts";
import { shortName } from "../surface.ts";
import type { Place } from "./places.ts";
import { GROWING, smallRequest } from "./requests.ts";
import { type Filling, filling } from "./texts.ts";

export type CostInput = {
  readonly number: number;
  readonly method: DescMethod;
  /** The places that grow, their sizes and what they hold. */
  readonly what: string;
  readonly small: Buffer;
  /**
   * How large it counts: its bytes, but each value at least as many as reading, checking and writing it costs,
   * however small it is.
   */
  readonly size: number;
  /** What the call does at least: for a batch, as many times what its smallest call does as it has items. */
  readonly items: number;
  readonly request: Buffer;
  /** The same, where everything that grows has this share of its size. */
  readonly shrunk: (share: number) => Buffer;
};

/** Several places of one request may grow to so much together. */
export type CostBounds = { readonly bytesMin: number; readonly bytesMax: number };

export type CostPlan = CostBounds & { readonly seed: number; readonly methods: readonly DescMethod[] };

type Growth = { readonly place: Place; readonly size: number; readonly filling: Filling };

/** Lists of which each item is a call of its own: a batch may cost what its items would cost alone. */
const BATCHES = ["lines[]", "requests[]"];
/** The message that the service takes is not larger. */
const MESSAGE_BYTES_MAX = 16 * 2 ** 20;
const PAIRS_SHARE = 0.5;
/** Few inputs are as large as they may be, since each costs as much as a thousand others. */
const LARGE_SHARE = 0.02;
const AT_LIMIT_SHARE = 0.3;

export function planInput(plan: CostPlan, number: number): CostInput {
  const chance = Chance.ofCall(plan.seed, number);
  const growing = GROWING.filter(({ method }) => plan.methods.includes(method));
  const { method, places } = chance.weighted(growing.map((one) => [Math.sqrt(one.places.length), one]));
  const bytes = targetBytes(plan, chance);
  const count = chance.is(PAIRS_SHARE) ? 2 : 1;
  const growths = Array.from({ length: count }, () => growthOf(chance, chance.pick(places), bytes / count));
  return inputOf(number, method, growths);
}

/** The input in which the place of this name grows so far. Throws if there is no such place. */
export function namedInput(method: DescMethod, name: string, size: number, unit: string): CostInput {
  const places = GROWING.find((one) => one.method === method)?.places ?? [];
  const place = places.find((one) => one.name === name);
  if (place === undefined) throw new Error(`${shortName(method)} has no place ${name}`);
  return inputOf(0, method, [{ place, size, filling: { unit, alike: false } }]);
}

function inputOf(number: number, method: DescMethod, growths: readonly Growth[]): CostInput {
  const shrunk = (share: number) => grown(method, growths, share);
  const request = shrunk(1);
  const what = growths.map(
    ({ place, size, filling: { unit } }) => `${place.name} × ${size} of ${JSON.stringify(unit)}`,
  );
  return {
    number,
    method,
    what: `${shortName(method)}: ${what.join(", ")}`,
    small: encode(method, smallRequest(method)),
    items: Math.max(1, ...growths.filter(({ place }) => BATCHES.includes(place.name)).map(({ size }) => size)),
    request,
    size: sizeOf(method, request),
    shrunk,
  };
}

/** Small ones are as frequent as large ones: sizes grow by factors. */
function targetBytes({ bytesMin, bytesMax }: CostBounds, chance: Chance): number {
  if (chance.is(LARGE_SHARE)) return bytesMax;
  const most = Math.log(Math.min(bytesMax, 2 ** 20));
  const least = Math.log(Math.min(bytesMin, 2 ** 20));
  return Math.exp(least + ((most - least) * chance.int(0, 1000)) / 1000);
}

function growthOf(chance: Chance, place: Place, bytes: number): Growth {
  const filled = filling(chance);
  const perItem = place.itemBytes === 1 ? 1 : place.itemBytes + filled.unit.length;
  const most = Math.max(1, Math.floor(bytes / perItem));
  const { limit } = place;
  const atLimit = limit !== null && limit <= most && chance.is(AT_LIMIT_SHARE);
  return { place, filling: filled, size: atLimit ? limit + chance.int(0, 1) : most };
}

const VALUE_BYTES = 64;

/** How large a request counts. */
export function sizeOf(method: DescMethod, request: Buffer): number {
  const tree = decode({ method, request });
  return Math.max(request.length, tree === null ? 0 : VALUE_BYTES * valuesOf(tree));
}

/** How large the messages of an answer count: an accepted job comes back with what the platform added to its pods. */
export function answerSize({ output }: DescMethod, messages: readonly Buffer[]): number {
  return messages.reduce(
    (sum, message) => sum + Math.max(message.length, VALUE_BYTES * valuesOf(fromBinary(output, message))),
    0,
  );
}

function valuesOf(value: unknown): number {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return 1;
  let count = 1;
  for (const inner of Array.isArray(value) ? value : Object.values(value)) count += valuesOf(inner);
  return count;
}

function grown(method: DescMethod, growths: readonly Growth[], share: number): Buffer {
  const tree = smallRequest(method);
  for (const { place, size, filling: filled } of growths) {
    place.grow(tree, Math.max(1, Math.ceil(size * share)), filled);
  }
  const bytes = encode(method, tree);
  return bytes.length <= MESSAGE_BYTES_MAX || share < 0.01 ? bytes : grown(method, growths, share / 2);
}
