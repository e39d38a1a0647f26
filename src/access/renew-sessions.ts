/** Renews the tokens of sessions before they expire. Of several processes, one renews those of a session. */
import type { LoginRenewal, SessionRecord } from "../core/access/console-session.ts";
import type { Authenticate } from "../core/access/identity.ts";
import type { CredentialKeys } from "../core/admin/credential-keys.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ProviderTokens } from "./login.ts";
import type { SessionStore } from "./ports.ts";
import { openTokens, renewAt, sealTokens, sessionEndMs } from "./sessions.ts";

export type RenewalPorts = {
  /** The machine's, by which tokens expire. */
  readonly clock: Pick<Clock, "nowMs" | "sleep">;
  readonly store: SessionStore;
  readonly keys: () => CredentialKeys;
  readonly authenticate: Authenticate;
  /** Throws if the issuer is away. */
  readonly renew: (renewal: LoginRenewal) => Promise<ProviderTokens>;
  readonly onEnded: (ended: { readonly subject: string; readonly why: string }) => void;
  readonly onError: (error: unknown) => void;
};

const LOOK_MS = 5_000;
/** Longer than an issuer has to answer. A session that was not renewed by then is due again. */
const CLAIM_MS = 30_000;

export type SessionRenewal = {
  /** Renews tokens that are due, and removes sessions that have expired. Returns how many sessions were renewed. */
  readonly renewDue: () => Promise<number>;
  readonly run: (signal: AbortSignal) => Promise<void>;
};

export function createRenewal(ports: RenewalPorts): SessionRenewal {
  const { clock, store, onError } = ports;
  const renewDue = async () => {
    const nowMs = clock.nowMs();
    const againAtMs = nowMs + CLAIM_MS;
    await store.deleteExpired(nowMs);
    const due = await store.claimDue({ nowMs, againAtMs });
    await Promise.all(due.map((session) => renewOne(session, againAtMs, ports).catch(onError)));
    return due.length;
  };
  const run = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      const renewed = await renewDue().catch((error: unknown) => {
        onError(error);
        return 0;
      });
      if (renewed === 0) await clock.sleep(LOOK_MS, signal);
    }
  };
  return { renewDue, run };
}

async function renewOne(session: SessionRecord, claimedUntilMs: number, ports: RenewalPorts): Promise<void> {
  const { idHash, subject, expiresAtMs } = session;
  const outcome = await renewedTokens(session, ports);
  if (outcome === null) return;
  if (outcome.kind === "refused") {
    await ports.store.delete(idHash);
    ports.onEnded({ subject, why: outcome.why });
    return;
  }
  const { tokens, identity } = outcome;
  const sealed = sealTokens(tokens, idHash, ports.keys());
  if (sealed === null) return;
  const times = {
    expiresAtMs: sessionEndMs(identity, tokens, expiresAtMs),
    renewAtMs: renewAt(identity, tokens, ports.clock.nowMs()),
  };
  await ports.store.renew({ idHash, tokens: sealed, ...times }, claimedUntilMs);
}

/** Null: this process has no key for the tokens. Another one may have it. */
async function renewedTokens(session: SessionRecord, { keys, authenticate, renew }: RenewalPorts) {
  const renewal = openTokens(session, keys())?.renewal ?? null;
  if (renewal === null) return null;
  const renewed = await renew(renewal);
  if (renewed.kind === "refused") return renewed;
  const { tokens } = renewed;
  const answer = await authenticate({ authorization: [`Bearer ${tokens.token}`], certificate: null });
  if (answer.kind === "refused") return answer;
  const { identity } = answer;
  if (identity.subject !== session.subject)
    return { kind: "refused", why: "its new token is of another caller" } as const;
  return { kind: "renewed", tokens, identity } as const;
}
