/** Which keys encrypt the stored credentials of clusters. The keys themselves are known to the caller alone. */
import { DEFAULT_KEY, type KeyUse, type Reseal, type ResealedPage } from "../../../core/admin/credential-keys.ts";
import { type JsonObject, stringAt } from "../../../runtime/json.ts";
import { type Db, type Executor, json } from "../db/db.ts";
import { appendAudit } from "./audit.ts";

/** Lists the keys that encrypt credentials. */
export function listKeyUses(executor: Executor): Promise<readonly KeyUse[]> {
  return executor.query<KeyUse>(LIST_KEY_USES, [DEFAULT_KEY]);
}

/** The same for an administrator: who read of credentials is in the audit log. */
export function readKeyUses(db: Db, nowMs: number): Promise<readonly KeyUse[]> {
  return db.tx(async (tx) => {
    const uses = await listKeyUses(tx);
    const details = { keys: uses.map(({ name }) => name) };
    await appendAudit(tx, { timeMs: nowMs, action: "ListCredentialKeys", subject: "", details });
    return uses;
  });
}

const LIST_KEY_USES = `
select coalesce(credentials->>'key', $1) as name, json_agg(name order by name) as clusters
  from clusters where credentials->>'kind' = 'sealed' group by 1 order by 1`;

/** A transaction locks and encrypts the credentials of this many clusters, so that nothing waits long for it. */
const RESEALED_MAX = 20;

/** Encrypts the credentials of the next clusters again that another key encrypts, those after a name. */
export function resealCredentials(
  db: Db,
  { key, after, nowMs }: { readonly key: string; readonly after: string; readonly nowMs: number },
  reseal: Reseal,
): Promise<ResealedPage> {
  return db.tx(async (tx) => {
    const page = await tx.query<{ name: string }>(NEXT_PAGE, [DEFAULT_KEY, key, after, RESEALED_MAX]);
    const names = page.map(({ name }) => name);
    const locked = await tx.query<{ name: string; credentials: JsonObject }>(LOCK_PAGE, [DEFAULT_KEY, key, names]);
    const outcomes = locked.map(({ name, credentials }) => ({
      name,
      before: credentials,
      ...reseal(credentials, name),
    }));
    const sealed = outcomes.flatMap((one) => (one.kind === "sealed" ? [one] : []));
    if (sealed.length > 0) {
      await tx.query(RESEAL_PAGE, [sealed.map(({ name }) => name), sealed.map(({ credentials }) => json(credentials))]);
    }
    await appendAudit(
      tx,
      ...sealed.map(({ name, before }) => ({
        timeMs: nowMs,
        action: "RotateCredentialKeys" as const,
        subject: name,
        details: { before: { key: stringAt(before, "key") ?? DEFAULT_KEY }, after: { key } },
      })),
    );
    const kept = outcomes.flatMap((one) => (one.kind === "kept" ? [{ cluster: one.name, message: one.why }] : []));
    return { changed: sealed.length, kept, last: names.at(-1) ?? null };
  });
}

const OF_OTHER_KEYS = "credentials->>'kind' = 'sealed' and coalesce(credentials->>'key', $1) <> $2";

const NEXT_PAGE = `select name from clusters where ${OF_OTHER_KEYS} and name > $3 order by name limit $4`;

/** Credentials that were replaced meanwhile may be those of the key already. */
const LOCK_PAGE = `
select name, credentials from clusters where name = any($3::text[]) and ${OF_OTHER_KEYS}
 order by name for no key update`;

/** The version stays: an administrator's change that is based on it is not in the way of this one. */
const RESEAL_PAGE = `
update clusters c set credentials = s.credentials::json
  from unnest($1::text[], $2::text[]) as s (name, credentials) where c.name = s.name`;
