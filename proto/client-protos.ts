/**
 * Writes `clients/proto` from `proto/gangway`: the API for clients, without the rules that only the service checks. So
 * a client needs neither protovalidate's proto nor a generator that knows it. Comments stay.
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const protoDir = dirname(fileURLToPath(import.meta.url));
const clientDir = join(dirname(protoDir), "clients/proto");
/** Only options of the service are in it. */
const RULES_ONLY = "bounds.proto";
const GO_PACKAGE = 'option go_package = "gangway.dev/gangway/v1;gangwayv1";';
const RULE = /^\(\s*(buf\.validate\.|content_bounds\))/;
const IMPORTED_RULES = /^import "(buf\/validate\/validate|gangway\/v1\/bounds)\.proto";\n/gm;

/** A proto without rules. Its declarations, comments and other options are the same. */
export function withoutRules(proto: string): string {
  const plain = withoutFieldRules(withoutStatements(proto.replace(IMPORTED_RULES, "")));
  return plain.replace(/^package .*;\n/m, (line) => `${line}\n${GO_PACKAGE}\n`);
}

/** Leaves out `option (buf.validate.message)… = …;` of messages and oneofs. */
function withoutStatements(text: string): string {
  let plain = "";
  let from = 0;
  for (const { index, 0: start } of text.matchAll(/^ *option (?=\(buf\.validate\.)/gm)) {
    if (index < from) continue;
    plain += text.slice(from, index);
    from = endOf(text, index + start.length, ";") + 1;
    if (text[from] === "\n") from += 1;
  }
  return plain + text.slice(from);
}

/** Leaves out rules among the options of fields, and brackets that are empty then. */
function withoutFieldRules(text: string): string {
  let plain = "";
  let from = 0;
  for (let at = nextCode(text, 0); at < text.length; at = nextCode(text, at + 1)) {
    if (text[at] !== "[") continue;
    const end = endOf(text, at + 1, "]");
    const options = partsOf(text.slice(at + 1, end));
    const kept = options.filter((option) => !RULE.test(option));
    if (kept.length < options.length) {
      plain += text.slice(from, at).trimEnd() + (kept.length === 0 ? "" : ` [${kept.join(", ")}]`);
      from = end + 1;
    }
    at = end;
  }
  return plain + text.slice(from);
}

/** The options of a field, without space around them. */
function partsOf(text: string): readonly string[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length; ) {
    const end = endOf(text, from, ",");
    parts.push(text.slice(from, end).trim());
    from = end + 1;
  }
  return parts;
}

const OPENING = "[{(";
const CLOSING = "]})";

/** Where a character comes that is in no text, comment or bracket after `from`. The end of the text: nowhere. */
function endOf(text: string, from: number, wanted: string): number {
  let depth = 0;
  for (let at = nextCode(text, from); at < text.length; at = nextCode(text, at + 1)) {
    const char = text[at] ?? "";
    if (depth === 0 && char === wanted) return at;
    if (OPENING.includes(char)) depth += 1;
    if (CLOSING.includes(char)) depth -= 1;
  }
  return text.length;
}

/** The first place from `at` on that is in no text and no comment. */
function nextCode(text: string, at: number): number {
  let place = at;
  for (;;) {
    const skipped = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/y;
    skipped.lastIndex = place;
    const found = skipped.exec(text);
    if (found === null) return place;
    place = skipped.lastIndex;
  }
}

function write(): void {
  rmSync(clientDir, { recursive: true, force: true });
  for (const folder of ["gangway/v1", "google/rpc"]) mkdirSync(join(clientDir, folder), { recursive: true });
  for (const name of readdirSync(join(protoDir, "gangway/v1"))) {
    if (name === RULES_ONLY) continue;
    const proto = readFileSync(join(protoDir, "gangway/v1", name), "utf8");
    writeFileSync(join(clientDir, "gangway/v1", name), withoutRules(proto));
  }
  // The protos that ours import, and the details of errors.
  for (const name of ["status", "error_details"]) {
    copyFileSync(join(protoDir, `vendor/google/rpc/${name}.proto`), join(clientDir, `google/rpc/${name}.proto`));
  }
  copyFileSync(join(protoDir, "client-buf.yaml"), join(clientDir, "buf.yaml"));
}

if (import.meta.main) write();
