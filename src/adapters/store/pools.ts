import { type Executor, json } from "./db.ts";

/** Makes the pools that are not there yet, in the default quota domain. */
export async function ensurePools(executor: Executor, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  await executor.query(ENSURE_POOLS, [json(names)]);
}

const ENSURE_POOLS = `
insert into pools (name, domain)
select distinct name, 'default' from json_array_elements_text($1::json) name order by name
on conflict (name) do nothing`;
