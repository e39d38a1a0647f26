import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import type { Chance } from "./chance.ts";
import type { Tree } from "./tree.ts";

/** Values of one field that are kept. Older ones are forgotten, so that most kept names still exist. */
const KEPT = 48;
/** Parts of an answer that are read: a page of 1,000 jobs teaches no more than its first ones. */
const READ_MAX = 400;
/** Fields of requests whose values answers return under another name. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  page_token: ["next_page_token"],
  resource_namespace: ["name"],
  pool: ["name", "resource_namespace"],
  cluster: ["name"],
  clusters: ["name", "cluster"],
  names: ["name"],
  queue: ["name"],
  default_queue: ["queue", "name"],
  kinds: ["kind"],
  version: ["version", "resource_version"],
};

type Value = string | bigint | number;

/** The names, ids, page tokens, cursors and versions that answers returned, by service and field. */
export class Bank {
  readonly #values = new Map<string, Value[]>();
  readonly #kept: number;
  readonly #accepts: (text: string) => boolean;

  /** `kept`: values of one field. `accepts`: whether a text may be kept. */
  constructor(kept = KEPT, accepts: (text: string) => boolean = () => true) {
    this.#kept = kept;
    this.#accepts = accepts;
  }

  learn(method: DescMethod, answer: Tree): void {
    let read = 0;
    const walk = (desc: DescMessage, tree: Tree) => {
      for (const field of desc.fields) {
        read += 1;
        if (read > READ_MAX) return;
        const value = field.oneof ? oneofValue(tree, field.oneof.localName, field.localName) : tree[field.localName];
        if (value === undefined) continue;
        const items = field.fieldKind === "list" ? (value as unknown[]) : [value];
        for (const item of items.slice(0, 8)) {
          if (field.message !== undefined && field.fieldKind !== "map") {
            if (field.message.typeName.startsWith("gangway.")) walk(field.message, item as Tree);
          } else if ((typeof item === "string" && item !== "" && item.length < 600) || typeof item === "bigint") {
            this.add(`${method.parent.name}/${field.name}`, item);
            this.add(field.name, item);
          }
        }
      }
    };
    walk(method.output, answer);
  }

  /** A known value for a field of a request; undefined if there is none. */
  find(chance: Chance, method: DescMethod, fieldName: string): Value | undefined {
    const names = [fieldName, ...(ALSO[fieldName] ?? [])];
    const keys = [...names.map((name) => `${method.parent.name}/${name}`), ...names];
    const known = keys.filter((key) => this.#values.has(key));
    if (known.length === 0) return undefined;
    const key = chance.is(0.7) ? known[0] : chance.pick(known);
    return chance.pick(this.#values.get(key ?? "") ?? []);
  }

  /** Keeps a value of a field. `key`: its name, alone or after its service and `/`. */
  add(key: string, value: Value): void {
    if (typeof value === "string" && !this.#accepts(value)) return;
    const values = this.#values.get(key) ?? [];
    this.#values.set(key, values);
    if (values.includes(value)) return;
    values.push(value);
    if (values.length > this.#kept) values.shift();
  }
}

function oneofValue(tree: Tree, oneof: string, name: string): unknown {
  const set = tree[oneof] as { case?: string; value?: unknown } | undefined;
  return set?.case === name ? set.value : undefined;
}
