import { InvalidArgumentError, Option } from "commander";
import type { Run } from "./shell.ts";

const PAGE_SIZE = 500;

/** `--limit` of commands that list. */
export function limitOption(): Option {
  return new Option("--limit <count>", "no more than so many").default(1000).argParser((text) => {
    if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("It must be a positive number.");
    return Number(text);
  });
}

type FetchPage<T> = (page: { readonly pageSize: number; readonly pageToken: string }) => Promise<{
  readonly items: readonly T[];
  readonly next: string;
}>;

/** All pages of a list up to the limit; says so where there is more. */
export async function allPages<T>(
  run: Run,
  { limit, what }: { readonly limit: number; readonly what: string },
  fetchPage: FetchPage<T>,
): Promise<T[]> {
  const items: T[] = [];
  let pageToken = "";
  do {
    const page = await fetchPage({ pageSize: Math.min(PAGE_SIZE, limit - items.length), pageToken });
    items.push(...page.items);
    pageToken = page.next;
  } while (pageToken !== "" && items.length < limit);
  if (pageToken !== "") run.deps.stderr(`only ${limit} ${what} are shown; --limit shows more\n`);
  return items;
}
