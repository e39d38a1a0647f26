/** Pages of lists that are in memory as a whole, in the order of their names. */
import { badPageToken } from "./rpc-error.ts";

const PAGE_SIZE_DEFAULT = 100;

type PageRequest = { readonly pageSize: number; readonly pageToken: string };

/** The records after the name in the token. `list` keeps a token of one list from being taken for one of another. */
export function pageByName<T extends { readonly name: string }>(
  list: string,
  records: readonly T[],
  { pageSize, pageToken }: PageRequest,
): { readonly items: readonly T[]; readonly nextPageToken: string } {
  const after = pageToken === "" ? null : nameIn(pageToken, list);
  const sorted = [...records].sort((one, other) => (one.name < other.name ? -1 : 1));
  const rest = after === null ? sorted : sorted.filter(({ name }) => name > after);
  const items = rest.slice(0, pageSize || PAGE_SIZE_DEFAULT);
  const last = items.at(-1);
  const hasMore = rest.length > items.length && last !== undefined;
  return { items, nextPageToken: hasMore ? Buffer.from(`${list}/${last.name}`).toString("base64url") : "" };
}

/** Throws INVALID_ARGUMENT for a token that the list has not returned. */
function nameIn(pageToken: string, list: string): string {
  const text = Buffer.from(pageToken, "base64url").toString("utf8");
  const name = text.slice(list.length + 1);
  if (!text.startsWith(`${list}/`) || name === "") throw badPageToken();
  return name;
}
