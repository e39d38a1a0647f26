import { append } from "../../runtime/lists.ts";
import type { Run } from "../run/run-command.ts";

const PAGE_SIZE = 500;

type FetchPage<T> = (page: { readonly pageSize: number; readonly pageToken: string }) => Promise<{
  readonly items: readonly T[];
  readonly next: string;
}>;

/** Fetches the pages of a list until so many items are there, and says whether there are more. */
export async function pagesUpTo<T>(
  limit: number,
  fetchPage: FetchPage<T>,
): Promise<{ readonly items: T[]; readonly isCut: boolean }> {
  const items: T[] = [];
  let pageToken = "";
  do {
    const page = await fetchPage({ pageSize: Math.min(PAGE_SIZE, limit - items.length), pageToken });
    append(items, page.items);
    pageToken = page.next;
  } while (pageToken !== "" && items.length < limit);
  return { items, isCut: pageToken !== "" };
}

/** Fetches the pages of a list up to the limit; prints a note on stderr if there are more items. */
export async function allPages<T>(
  run: Run,
  { limit, plural }: { readonly limit: number; readonly plural: string },
  fetchPage: FetchPage<T>,
): Promise<T[]> {
  const { items, isCut } = await pagesUpTo(limit, fetchPage);
  if (isCut) run.deps.stderr(`only the first ${limit} ${plural} are shown; use --limit to see more\n`);
  return items;
}
