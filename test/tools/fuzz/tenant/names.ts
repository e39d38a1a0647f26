/** The names of the tenants, and what an answer tells of those that its caller may not know. */
import { type DescMessage, fromBinary } from "@bufbuild/protobuf";
import type { Answer } from "../caller.ts";
import type { PlannedCall } from "../plan.ts";
import { type Tree, treeOf } from "../tree.ts";

/** What the callers of the run may use. */
export const OUR = {
  namespace: "our-space",
  project: "our-project",
  queue: "our-queue",
  /** Below the queue. */
  strictQueue: "our-strict-queue",
} as const;
/** Names of the other tenant begin with it. Calls name these things on purpose. */
export const THEIRS = "theirs";
/** Names of the other tenant begin with it, and what its things contain. No request has it, so no answer may. */
export const UNSPOKEN = "unspoken";
/** Names of nothing begin with it. It is as long as THEIRS, so that answers differ in nothing else. */
export const ABSENT = "absent";

/** The identifiers that the service has given to the other tenant's jobs. */
export type Uids = { readonly theirs: readonly string[]; readonly unspoken: readonly string[] };

const NAME = new RegExp(`${THEIRS}-[-a-z0-9]*`, "g");
/** Tokens of pages and cursors are names in base64. */
const ENCODED = /^[A-Za-z0-9_+/-]{8,}={0,2}$/;

/** The uid of no job, for each uid of the other tenant. */
export function absentUid(uid: string): string {
  return `${uid.slice(0, -6)}000000`;
}

/** Whether a request names something of the other tenant. */
export function namesTheirs(request: Buffer, uids: Uids): boolean {
  return request.includes(THEIRS) || uids.theirs.some((uid) => request.includes(uid));
}

/** The same bytes with names of nothing in place of the other tenant's names. Lengths stay. */
export function withAbsent(bytes: Buffer, uids: Uids): Buffer {
  const text = bytes.toString("latin1").replaceAll(THEIRS, ABSENT);
  return Buffer.from(
    uids.theirs.reduce((all, uid) => all.replaceAll(uid, absentUid(uid)), text),
    "latin1",
  );
}

/** The text of an answer, as if it were about the other tenant. */
export function withoutAbsent(text: string, uids: Uids): string {
  return uids.theirs.reduce((all, uid) => all.replaceAll(absentUid(uid), uid), text.replaceAll(ABSENT, THEIRS));
}

/** Everything of the other tenant that an answer tells. `spoken`: the names that calls have told the service. */
export function leaksOf(call: PlannedCall, answer: Answer, of: { uids: Uids; spoken: ReadonlySet<string> }): string[] {
  const text = textOf(call, answer);
  const { uids, spoken } = of;
  const told = [...new Set([...text.matchAll(NAME)].map(([name]) => name)), ...uids.theirs].filter(
    (name) => text.includes(name) && !spoken.has(name),
  );
  const unspoken = [UNSPOKEN, ...uids.unspoken].filter((word) => text.includes(word));
  return [...unspoken.map((word) => around(text, word)), ...told.map((name) => around(text, name))];
}

/**
 * The names of the other tenant in a request. Its bytes may be no message. In a message, each text counts by itself
 * too: the tag of the field after it can look like the end of a name.
 */
export function spokenIn({ method, request }: Pick<PlannedCall, "method" | "request">, uids: Uids): readonly string[] {
  const text = [request.toString("latin1"), ...textsIn(decoded(method.input, request))].join("\n");
  const names = [...text.matchAll(NAME)].map(([name]) => name);
  // An answer may cut a name that is too long, or name a part of it.
  return [...names, ...uids.theirs.filter((uid) => text.includes(uid))];
}

function around(text: string, word: string): string {
  const at = text.indexOf(word);
  return text.slice(Math.max(0, at - 80), at + word.length + 40).replaceAll(/[^ -~]+/g, " ");
}

/** All that an answer tells: its headers, its message and details, its messages, and the texts encoded in those. */
function textOf({ method }: PlannedCall, answer: Answer): string {
  const parts = [answer.headers, answer.message, answer.details?.toString("latin1") ?? ""];
  for (const message of answer.messages) {
    parts.push(message.toString("latin1"));
    const encoded = textsIn(decoded(method.output, message)).filter((text) => ENCODED.test(text));
    parts.push(...encoded.map((text) => Buffer.from(text, "base64").toString("latin1")));
  }
  return parts.join("\n");
}

/** A message as plain data. Null: the bytes are none; the verdict on the call tells of that. */
function decoded(schema: DescMessage, bytes: Buffer): Tree | null {
  try {
    return treeOf(fromBinary(schema, bytes));
  } catch {
    return null;
  }
}

/** The texts of a message, but the keys of its maps. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
