/** Finds every regular expression of a file of `src`, written out or made from constants of that file. */
import { stripTypeScriptTypes } from "node:module";
import { parse } from "acorn";

export type Pattern = { readonly line: number; readonly source: string; readonly flags: string };
/** A call that makes a regular expression of a text that the file does not show. */
export type UnreadPattern = { readonly line: number; readonly code: string };
export type FoundPatterns = { readonly patterns: readonly Pattern[]; readonly unread: readonly UnreadPattern[] };

type SyntaxNode = {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly loc: { readonly start: { readonly line: number } };
  readonly [member: string]: unknown;
};

/** Methods of text that make a regular expression of a text. The others take a text literally. */
const MAKE_PATTERNS = ["match", "matchAll", "search"];

export function findPatterns(typescript: string): FoundPatterns {
  const code = stripTypeScriptTypes(typescript, { mode: "strip" });
  const root = parse(code, { ecmaVersion: "latest", sourceType: "module", locations: true }) as unknown as SyntaxNode;
  const nodes = [...nodesIn(root)];
  const constants = constantsOf(nodes);
  const patterns: Pattern[] = [];
  const unread: UnreadPattern[] = [];
  for (const node of nodes) {
    const { line } = node.loc.start;
    const made = madeBy(node, constants);
    if (made === "unread") unread.push({ line, code: code.slice(node.start, node.end) });
    else if (made !== null) patterns.push({ line, ...made });
  }
  return { patterns, unread };
}

/** The regular expression that a node makes. Null: it makes none, or uses one that the file defines. */
function madeBy(node: SyntaxNode, constants: ReadonlyMap<string, SyntaxNode>) {
  const literal = literalOf(node);
  if (literal !== null) return literal;
  const args = (node["arguments"] ?? []) as readonly SyntaxNode[];
  const callee = node["callee"] as SyntaxNode | undefined;
  if (callee === undefined) return null;
  const [first, second] = args;
  if (callee["name"] === "RegExp" || nameOf(callee["property"]) === "RegExp") {
    const source = first === undefined ? "" : constantText(first, constants);
    const flags = second === undefined ? "" : constantText(second, constants);
    return source === null || flags === null ? "unread" : { source, flags };
  }
  if (!MAKE_PATTERNS.includes(nameOf(callee["property"])) || args.length !== 1) return null;
  const value = constants.get(nameOf(first)) ?? first;
  const isPattern = value !== undefined && (literalOf(value) !== null || nameOf(value["callee"]) === "RegExp");
  return isPattern ? null : "unread";
}

function literalOf(node: SyntaxNode): Omit<Pattern, "line"> | null {
  const regex = node["regex"] as { readonly pattern: string; readonly flags: string } | undefined;
  return regex === undefined ? null : { source: regex.pattern, flags: regex.flags };
}

/** The text of an expression of constants. Null: it has other parts. */
function constantText(node: SyntaxNode, constants: ReadonlyMap<string, SyntaxNode>): string | null {
  const all = (parts: readonly SyntaxNode[], glue: string): string | null => {
    const texts = parts.map((part) => constantText(part, constants));
    return texts.includes(null) ? null : texts.join(glue);
  };
  switch (node.type) {
    case "Literal":
      return typeof node["value"] === "string" ? node["value"] : null;
    case "Identifier": {
      const value = constants.get(nameOf(node));
      return value === undefined ? null : constantText(value, constants);
    }
    case "TemplateElement":
      return (node["value"] as { readonly cooked: string }).cooked;
    case "TemplateLiteral": {
      const parts = [...(node["quasis"] as SyntaxNode[]), ...(node["expressions"] as SyntaxNode[])];
      return all(
        parts.sort((a, b) => a.start - b.start),
        "",
      );
    }
    case "BinaryExpression":
      return node["operator"] === "+" ? all([node["left"], node["right"]] as SyntaxNode[], "") : null;
    case "CallExpression":
      return joinedText(node, all, constants);
    default:
      return null;
  }
}

/** `["a", "b"].join("")` */
function joinedText(
  node: SyntaxNode,
  all: (parts: readonly SyntaxNode[], glue: string) => string | null,
  constants: ReadonlyMap<string, SyntaxNode>,
): string | null {
  const callee = node["callee"] as SyntaxNode;
  const list = callee["object"] as SyntaxNode | undefined;
  const [glue] = node["arguments"] as readonly SyntaxNode[];
  if (nameOf(callee["property"]) !== "join" || list?.type !== "ArrayExpression" || glue === undefined) return null;
  const between = constantText(glue, constants);
  return between === null ? null : all(list["elements"] as SyntaxNode[], between);
}

/** The values of the names that the file declares once with `const`. */
function constantsOf(nodes: readonly SyntaxNode[]): ReadonlyMap<string, SyntaxNode> {
  const found = new Map<string, SyntaxNode>();
  const several = new Set<string>();
  for (const node of nodes.filter(({ type }) => type === "VariableDeclaration")) {
    for (const { id, init } of node["declarations"] as { id: SyntaxNode; init: SyntaxNode | null }[]) {
      const name = nameOf(id);
      if (found.has(name) || node["kind"] !== "const" || init === null) several.add(name);
      else found.set(name, init);
    }
  }
  for (const name of several) found.delete(name);
  return found;
}

function nameOf(node: unknown): string {
  const name = (node as { readonly name?: unknown } | undefined)?.name;
  return typeof name === "string" ? name : "";
}

function* nodesIn(value: unknown): Generator<SyntaxNode> {
  if (Array.isArray(value)) for (const item of value) yield* nodesIn(item);
  else if (typeof value === "object" && value !== null && "type" in value) {
    yield value as SyntaxNode;
    for (const [member, inner] of Object.entries(value)) if (member !== "loc") yield* nodesIn(inner);
  }
}
