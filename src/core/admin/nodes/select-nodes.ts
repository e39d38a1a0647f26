/** Selects the nodes of a page: those that pass, are newer than what the caller knows, and follow the page before. */
import type { ListedCluster, NodeBook, NodeNews } from "./node-book.ts";
import type { NodePage, NodeQuery } from "./node-page.ts";
import { firstAfter, type NodeKey, type NodeRow, passing } from "./node-query.ts";
import { decodeVersion, encodeVersion, type ShownPlace } from "./node-version.ts";

export type SelectedNodes = Pick<NodePage, "total" | "version" | "clusters"> & {
  /** The nodes of the page and one more, which is read only if the page has room. */
  readonly nodes: readonly { readonly node: NodeRow; readonly key: NodeKey }[];
};

/** Finds the page of a query among the nodes of these clusters. `after`: the key in the query's cursor. */
export function selectNodes(
  book: NodeBook,
  rows: readonly ListedCluster[],
  { query, after }: { readonly query: NodeQuery; readonly after: NodeKey | null },
): SelectedNodes {
  const known = query.newerThan === null ? null : decodeVersion(query.newerThan, query.scope);
  const news = new Map(rows.map((row) => [row.name, newsOf(book, row, known)]));
  const passes = passing(query.filter);
  const names = rows.map(({ name }) => name);
  function* wanted(): Generator<NodeRow> {
    for (const node of book.nodesOf(names)) if (news.get(node.cluster)?.isNews(node) && passes(node)) yield node;
  }
  const { nodes, total } = firstAfter(wanted(), { order: query.order, after, limit: query.pageSize + 1 });
  const clusters = rows.map((row) => {
    const { name, flavors, observedMs, reachable, cordoned, simulated, version } = row;
    const { complete, removed, isNews } = news.get(name) ?? ALL;
    const gone = complete || after !== null ? [] : [...removed, ...failing(book.nodesOf([name]), isNews, passes)];
    const shown = { name, flavors, observedMs, reachable, cordoned, simulated, version };
    return { ...shown, complete, removed: gone.sort() };
  });
  return { nodes, total, clusters, version: encodeVersion(query.scope, placesOf(book, rows)) };
}

const ALL: NodeNews = { complete: true, removed: [], isNews: () => true };

function newsOf(
  book: NodeBook,
  { name, version }: ListedCluster,
  known: ReadonlyMap<string, ShownPlace> | null,
): NodeNews {
  const place = known?.get(name);
  return place === undefined || place.settings !== version ? ALL : book.newsSince(name, place);
}

/** The nodes that have changed and do not pass: they may have passed before. */
function failing(
  nodes: Iterable<NodeRow>,
  isNews: (node: NodeRow) => boolean,
  passes: (node: NodeRow) => boolean,
): readonly string[] {
  const names: string[] = [];
  for (const node of nodes) if (isNews(node) && !passes(node)) names.push(node.name);
  return names;
}

function placesOf(book: NodeBook, rows: readonly ListedCluster[]): ReadonlyMap<string, ShownPlace> {
  return new Map(
    rows.flatMap(({ name, version }) => {
      const cursor = book.cursorOf(name);
      return cursor === null ? [] : [[name, { ...cursor, settings: version }] as const];
    }),
  );
}
