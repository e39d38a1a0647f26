/** How much one caller may ask of the service at a time, and the file that says so. */
import { isJsonObject, type Json, type JsonObject } from "../../runtime/json.ts";
import { known, listOf, objectOf, textOf } from "../../runtime/read-members.ts";
import type { Soon } from "../../runtime/soon.ts";
import type { Identity } from "./identity.ts";

/** The limits of one caller. Null: there is none. */
export type CallLimits = {
  /** The cost of calls in one second; most calls cost one. Shared by all processes if they share a Redis. */
  readonly callsPerSecond: number | null;
  /** What calls may cost beyond that in `BURST_SECONDS`. */
  readonly burst: number | null;
  /** Calls that have no answer yet, without the streams below. Each process counts its own. */
  readonly callsInFlight: number | null;
  /** Open WatchJobs streams. Each process counts its own. */
  readonly watches: number | null;
  /** Open StreamJobLogs streams. Each process counts its own. */
  readonly logStreams: number | null;
  /** Requests of WaitForResource that wait. Each process counts its own. */
  readonly waitingRequests: number | null;
  /** Tokens of robots that the caller has made and that count now, in the whole installation. */
  readonly robots: number | null;
};

export type CallLimitName = keyof CallLimits;

export const BURST_SECONDS = 10;

/** Enough for the tools of one team, and few enough that a small installation serves ten such callers at a time. */
export const CALL_LIMIT_DEFAULTS: CallLimits = {
  callsPerSecond: 100,
  burst: 1_000,
  callsInFlight: 200,
  watches: 100,
  logStreams: 100,
  waitingRequests: 200,
  robots: 100,
};

const NO_LIMITS: CallLimits = {
  callsPerSecond: null,
  burst: null,
  callsInFlight: null,
  watches: null,
  logStreams: null,
  waitingRequests: null,
  robots: null,
};

/** Who has limits of its own. */
export type LimitedCaller = {
  readonly by: { readonly kind: "subject" | "group"; readonly name: string };
  readonly limits: Partial<CallLimits>;
};

export type CallLimitSettings = {
  /** Of each caller that is known. */
  readonly defaults: CallLimits;
  /** The first that names a caller counts. */
  readonly callers: readonly LimitedCaller[];
};

export const CALL_LIMIT_SETTINGS: CallLimitSettings = { defaults: CALL_LIMIT_DEFAULTS, callers: [] };

/** A limit for which calls are refused before their handlers see them. */
export type RefusingLimit = Exclude<CallLimitName, "burst" | "robots">;

/** A call beyond a limit of its caller. */
export type LimitedCall = {
  readonly kind: "limited";
  readonly limit: RefusingLimit;
  readonly max: number;
  /** The time after which the call may be let in, once it is refused. */
  readonly retryMs: number;
  /** How long the refusal is held back: a caller that calls on and on is refused at a steady pace. */
  readonly heldMs: number;
};

/** A call that was let in. */
export type CallPlace = {
  readonly kind: "entered";
  /** False: the call is exempt from limits. */
  readonly isLimited: boolean;
  /** Counts bytes of the call's request. Null: they are within the limits. */
  readonly pay: (bytes: number) => Soon<LimitedCall | null>;
  /** Counts bytes of the call's answer. Later calls pay for those beyond the limits. */
  readonly charge: (bytes: number) => void;
  /** Gives its place back, once. */
  readonly leave: () => void;
};

export type LimitCalls = {
  readonly enter: (caller: Identity, rpc: string) => Soon<CallPlace | LimitedCall>;
  /** How many robots of a caller may have tokens that count. Null: any number. */
  readonly robotsOf: (caller: Identity) => number | null;
};

/** The place of a call that is exempt from limits. */
export const UNLIMITED_CALL: CallPlace = {
  kind: "entered",
  isLimited: false,
  pay: () => null,
  charge: () => {},
  leave: () => {},
};

/** Lets every call in. */
export const NO_CALL_LIMITS: LimitCalls = { enter: () => UNLIMITED_CALL, robotsOf: () => null };

/** The limits of a caller. Callers of a service without authentication have only those that name `anonymous`. */
export function limitsOf(identity: Identity, { defaults, callers }: CallLimitSettings): CallLimits {
  const named = callers.find(({ by }) =>
    by.kind === "subject" ? by.name === identity.subject : identity.groups.includes(by.name),
  );
  const others = identity.method === "anonymous" ? NO_LIMITS : defaults;
  return named === undefined ? others : { ...others, ...named.limits };
}

/** The limit of how many calls one caller has at a time. */
export type PlaceName = Exclude<RefusingLimit, "callsPerSecond">;

/** Renewals and releases are exempt: without them a caller would lose or keep tokens because it is busy. */
const PLACES: Readonly<Record<string, PlaceName | null>> = {
  "gangway.v1.JobService/WatchJobs": "watches",
  "gangway.v1.JobService/StreamJobLogs": "logStreams",
  "gangway.v1.ResourceManager/WaitForResource": "waitingRequests",
  "gangway.v1.ResourceManager/RenewAllocations": null,
  "gangway.v1.ResourceManager/ReleaseResource": null,
  "gangway.v1.ResourceManager/BatchReleaseResources": null,
};

/** The limit of how many calls of an RPC one caller has at a time. Null: the RPC is exempt from all limits. */
export function placeOf(rpc: string): PlaceName | null {
  if (rpc.startsWith("grpc.health.")) return null;
  const place = PLACES[rpc];
  return place === undefined ? "callsInFlight" : place;
}

const BYTES_OF_A_CALL = 64 * 1024;

/** What the bytes of a request or an answer add to the cost of a call, which is one. */
export function costOfBytes(bytes: number): number {
  return Math.floor(bytes / BYTES_OF_A_CALL);
}

const LIMIT_MAX = 1_000_000;

type SettingsOutcome =
  | { readonly kind: "read"; readonly settings: CallLimitSettings }
  /** Each error names a member and says what is allowed. */
  | { readonly kind: "refused"; readonly errors: readonly string[] };

/** Reads the file with limits of callers. */
export function readCallLimits(value: Json): SettingsOutcome {
  const errors: string[] = [];
  if (!isJsonObject(value)) return { kind: "refused", errors: ["it must be an object"] };
  known(value, "", ["defaults", "callers"], errors);
  const defaults = objectOf(value["defaults"] ?? {}, "defaults", errors);
  known(defaults, "defaults.", LIMIT_NAMES, errors);
  const callers = listOf(value["callers"] ?? [], "callers", errors).map((one, at) =>
    readCaller(one, `callers[${at}]`, errors),
  );
  const settings = { defaults: { ...CALL_LIMIT_DEFAULTS, ...readLimits(defaults, "defaults", errors) }, callers };
  return errors.length > 0 ? { kind: "refused", errors } : { kind: "read", settings };
}

const LIMIT_NAMES = Object.keys(CALL_LIMIT_DEFAULTS) as readonly CallLimitName[];

function readCaller(value: Json, at: string, errors: string[]): LimitedCaller {
  const of = objectOf(value, at, errors);
  known(of, `${at}.`, ["subject", "group", ...LIMIT_NAMES], errors);
  const { subject, group } = of;
  if ((subject === undefined) === (group === undefined)) errors.push(`${at} must have either subject or group`);
  const kind = group === undefined ? "subject" : "group";
  const name = textOf((group === undefined ? subject : group) ?? "-", `${at}.${kind}`, errors);
  return { by: { kind, name }, limits: readLimits(of, at, errors) };
}

function readLimits(of: JsonObject, at: string, errors: string[]): Partial<CallLimits> {
  const limits: Partial<Record<CallLimitName, number | null>> = {};
  for (const name of LIMIT_NAMES) {
    const sent = of[name];
    if (sent === undefined) continue;
    const min = name === "burst" || name === "robots" ? 0 : 1;
    if (sent === "none") limits[name] = null;
    else if (isWhole(sent) && sent >= min && sent <= LIMIT_MAX) limits[name] = sent;
    else errors.push(`${at}.${name} must be a whole number from ${min} to ${LIMIT_MAX}, or none`);
  }
  return limits;
}

function isWhole(value: Json): value is number {
  return typeof value === "number" && Number.isInteger(value);
}
