/** Renews the tokens of sessions before they expire. Of several processes, one renews those of a session. */
import type { ClaimedSession, LoginRenewal, SessionTokens } from "../core/access/console-session.ts";
import type { Authenticate, Authentication, Identity } from "../core/access/identity.ts";
import type { CredentialKeys } from "../core/admin/credential-keys.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ProviderTokens } from "./login.ts";
import type { SessionStore } from "./ports.ts";
import { openTokens, renewAt, sealTokens, sessionEndMs } from "./sessions.ts";

export type RenewalPorts = {
  /** The machine's, by which tokens expire. */
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs" | "sleep">;
  readonly store: SessionStore;
  readonly keys: () => CredentialKeys;
  readonly authenticate: Authenticate;
  /** Throws if the issuer is away. */
  readonly renew: (renewal: LoginRenewal) => Promise<ProviderTokens>;
  readonly revoke: (renewal: LoginRenewal) => Promise<void>;
  readonly onEnded: (ended: { readonly subject: string; readonly why: string }) => void;
  readonly onError: (error: unknown) => void;
};

const LOOK_MS = 5_000;
/** Longer than an issuer has to answer. A session that was not renewed by then is due again. */
const CLAIM_MS = 30_000;
/** Sessions whose tokens one process renews at a time. */
const DUE_MAX = 20;
/** Tokens that could not be renewed are due again after this. */
const RETRY_MS = 30_000;
/** New tokens that could not be written are written again after this. The old refresh token counts no more. */
const WRITE_AGAIN_MS = 1_000;

export type SessionRenewal = {
  /** Renews tokens that are due, and removes sessions that have expired. Returns how many sessions were due. */
  readonly renewDue: (signal: AbortSignal) => Promise<number>;
  readonly run: (signal: AbortSignal) => Promise<void>;
};

export function createRenewal(ports: RenewalPorts): SessionRenewal {
  const { clock, store, onError } = ports;
  const renewDue = async (signal: AbortSignal) => {
    const nowMs = clock.nowMs();
    await store.deleteExpired(nowMs);
    const claim = { untilMs: clock.monotonicMs() + CLAIM_MS, signal };
    const due = await store.claimDue({ nowMs, claimMs: CLAIM_MS, max: DUE_MAX });
    await Promise.all(due.map((session) => renewOne(session, claim, ports).catch(onError)));
    return due.length;
  };
  const run = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      const due = await renewDue(signal).catch((error: unknown) => {
        onError(error);
        return 0;
      });
      if (due < DUE_MAX) await clock.sleep(LOOK_MS, signal);
    }
  };
  return { renewDue, run };
}

type Claim = { readonly untilMs: number; readonly signal: AbortSignal };

type RenewalOutcome =
  | { readonly kind: "renewed"; readonly tokens: SessionTokens; readonly identity: Identity }
  /** `tokens`: the token that counts still, with what renews it next. */
  | { readonly kind: "notYet"; readonly tokens: SessionTokens; readonly cause: unknown }
  | { readonly kind: "refused"; readonly why: string };

async function renewOne(session: ClaimedSession, claim: Claim, ports: RenewalPorts): Promise<void> {
  const { subject, expiresAtMs } = session;
  const old = openTokens(session, ports.keys());
  // Another process may have the key, and gets the session once the claim is over.
  if (old === null || old.renewal === null) return;
  const outcome = await renewedTokens(session, { token: old.token, renewal: old.renewal }, ports);
  if (outcome.kind === "refused") {
    if (await ports.store.deleteClaimed(session)) ports.onEnded({ subject, why: outcome.why });
    return;
  }
  const { tokens } = outcome;
  const nowMs = ports.clock.nowMs();
  if (outcome.kind === "notYet") {
    ports.onError(outcome.cause);
    await keep(session, { tokens, expiresAtMs, renewAtMs: nowMs + RETRY_MS }, { claim, ports });
    return;
  }
  const { identity } = outcome;
  const times = {
    expiresAtMs: sessionEndMs(identity, tokens, expiresAtMs),
    renewAtMs: renewAt(identity, tokens, nowMs),
  };
  await keep(session, { tokens, ...times }, { claim, ports });
}

async function renewedTokens(
  session: ClaimedSession,
  old: SessionTokens & { readonly renewal: LoginRenewal },
  ports: RenewalPorts,
): Promise<RenewalOutcome> {
  const renewed = await attempt(() => ports.renew(old.renewal));
  if (renewed.kind === "threw") return { kind: "notYet", tokens: old, cause: renewed.cause };
  if (renewed.kind === "refused") return renewed;
  const { tokens } = renewed;
  const notYet = (cause: unknown) => ({ kind: "notYet", tokens: { ...tokens, token: old.token }, cause }) as const;
  const answer = await judge(tokens.token, ports);
  if (answer.kind === "threw") return notYet(answer.cause);
  if (answer.kind === "refused") {
    // The keys of the issuer may have been read just before it signed with a new one.
    const before = await judge(old.token, ports);
    return before.kind === "refused" ? answer : notYet(new Error(`a renewed token does not count yet: ${answer.why}`));
  }
  const { identity } = answer;
  if (identity.subject !== session.subject) return { kind: "refused", why: "its new token is of another caller" };
  return { kind: "renewed", tokens, identity };
}

function judge(token: string, { authenticate }: RenewalPorts): Promise<Authentication | Threw> {
  return attempt(async () => authenticate({ authorization: [`Bearer ${token}`], certificate: null }));
}

type Threw = { readonly kind: "threw"; readonly cause: unknown };

async function attempt<T>(task: () => Promise<T>): Promise<T | Threw> {
  try {
    return await task();
  } catch (cause) {
    return { kind: "threw", cause };
  }
}

type Kept = { readonly tokens: SessionTokens; readonly expiresAtMs: number; readonly renewAtMs: number | null };
type Keeping = { readonly claim: Claim; readonly ports: RenewalPorts };

/** Writes new tokens, again and again until the claim is over: without them, the session cannot be renewed any more. */
async function keep({ idHash, claimMs }: ClaimedSession, { tokens, ...times }: Kept, of: Keeping): Promise<void> {
  const { claim, ports } = of;
  const { clock, store } = ports;
  for (;;) {
    const sealed = sealTokens(tokens, idHash, ports.keys());
    if (sealed === null) return;
    const kept = await attempt(() => store.renew({ idHash, tokens: sealed, ...times }, claimMs));
    if (kept === false) return revokeOrphan(idHash, tokens, ports);
    if (kept === true) return;
    if (claim.signal.aborted || clock.monotonicMs() + WRITE_AGAIN_MS >= claim.untilMs) throw kept.cause;
    ports.onError(kept.cause);
    await clock.sleep(WRITE_AGAIN_MS, claim.signal);
  }
}

/** Tokens of a session that has ended meanwhile, as by a logout, must not count on. */
async function revokeOrphan(idHash: string, { renewal }: SessionTokens, ports: RenewalPorts): Promise<void> {
  const isThere = (await ports.store.find(idHash, ports.clock.nowMs())) !== null;
  if (!isThere && renewal !== null) await ports.revoke(renewal);
}
