import type { LedgerPage, LedgerQuery } from "../../../core/quota/admin.ts";
import { append } from "../../../runtime/lists.ts";
import { decodeCursor, encodeCursor } from "../db/cursor.ts";
import { type Executor, storable } from "../db/db.ts";
import { LEDGER_COLUMNS, type LedgerColumns, ledgerRow } from "../ledger/ledger-row.ts";
import { poolWithin } from "./list-pools.ts";

const ORDER = "allocations";

/** Lists live allocations, oldest grants first. A page starts after the last row of the previous page. */
export async function listAllocations(executor: Executor, query: LedgerQuery): Promise<LedgerPage | "badCursor"> {
  const key = query.after === null ? [] : decodeCursor(query.after, ORDER, ["number", "number"]);
  if (key === null) return "badCursor";
  const where = new Conditions();
  addFilter(where, query.filter);
  const [grantedMs, id] = key;
  if (grantedMs !== undefined && id !== undefined) {
    where.add(
      (first) => `(a.granted_ms, a.id) > (${first}::bigint, $${where.params.length + 2}::bigint)`,
      grantedMs,
      id,
    );
  }
  const rows = await executor.query<AllocationRow>(
    `${SELECT_ALLOCATIONS} ${where.text()} order by a.granted_ms, a.id limit ${Math.trunc(query.pageSize) + 1}`,
    where.params,
  );
  const page = rows.slice(0, query.pageSize);
  const last = page.at(-1);
  return {
    allocations: page.map((row) => ({
      ...ledgerRow(row),
      holderText: row.holder_text,
      grantTimeMs: row.granted_ms,
    })),
    next: rows.length > page.length && last !== undefined ? encodeCursor(ORDER, [last.granted_ms, last.id]) : null,
  };
}

type AllocationRow = LedgerColumns & { readonly id: number; readonly granted_ms: number; readonly holder_text: string };

const SELECT_ALLOCATIONS = `
select ${LEDGER_COLUMNS}, a.id, a.granted_ms,
       coalesce(
         a.caller,
         'job/' || coalesce((select namespace || '/' || name from jobs where uid = a.job_uid), a.job_uid::text)
                || '/' || a.admission
       ) as holder_text
  from allocations a
 where a.released_ms is null`;

/** SQL conditions with their parameters. The statement holds only the given filters, so that each uses its index. */
class Conditions {
  readonly params: (string | number | readonly string[])[] = [];
  readonly #conditions: string[] = [];

  add(condition: (first: string) => string, ...params: readonly (string | number | readonly string[])[]): void {
    this.#conditions.push(condition(`$${this.params.length + 1}`));
    append(
      this.params,
      params.map((param) => (typeof param === "string" ? storable(param) : param)),
    );
  }

  /** A condition without parameters. */
  addText(condition: string): void {
    this.#conditions.push(condition);
  }

  text(): string {
    return this.#conditions.map((condition) => `and ${condition}`).join(" ");
  }
}

function addFilter(where: Conditions, filter: LedgerQuery["filter"]): void {
  const { pool, project, namespace, holder, grantedBeforeMs, neverLapses, shown } = filter;
  if (shown)
    where.add(
      (at) => `(a.caller = ${at} or ${poolWithin("a.pool", `$${where.params.length + 2}`)})`,
      shown.holder,
      shown.pools,
    );
  if (pool !== null) where.add((at) => `a.pool = ${at}`, pool);
  if (project !== null) where.add((at) => `a.project = ${at}`, project);
  if (namespace !== null) where.add((at) => `a.namespace = ${at}`, namespace);
  if (grantedBeforeMs !== null) where.add((at) => `a.granted_ms < ${at}`, grantedBeforeMs);
  if (neverLapses) where.addText("a.caller is not null and a.lease_ms is null");
  if (holder !== null) addHolder(where, holder);
}

const NAMED_JOB = /^job\/([^/]+)\/([^/]+)\/([1-9][0-9]{0,8})$/;
const UNKNOWN_JOB = /^job\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/([1-9][0-9]{0,8})$/;

function addHolder(where: Conditions, holder: string): void {
  const [, namespace, name, number] = NAMED_JOB.exec(holder) ?? [];
  const [, uid, admission] = UNKNOWN_JOB.exec(holder) ?? [];
  if (namespace !== undefined && name !== undefined && number !== undefined) {
    where.add(
      (at) => `a.job_uid = (select uid from jobs where namespace = ${at} and name = $${where.params.length + 2})`,
      namespace,
      name,
    );
    where.add((at) => `a.admission = ${at}::int`, Number(number));
  } else if (uid !== undefined && admission !== undefined) {
    where.add((at) => `a.job_uid = ${at}::uuid`, uid);
    where.add((at) => `a.admission = ${at}::int`, Number(admission));
  } else where.add((at) => `a.caller = ${at}`, holder);
}
