/**
 * Leaves out mutants that would prove nothing. It skips texts for people (with a space in them): tests compare few
 * texts, and wording is no decision. With `GANGWAY_MUTATION_SAMPLE` below 100, it skips most top-level declarations.
 */
import { createHash } from "node:crypto";
import { declareValuePlugin, PluginKind } from "@stryker-mutator/api/plugin";

type Node = { readonly type: string; readonly value?: unknown; readonly start?: number | null };
type Path = { readonly node: Node; readonly parent?: Node | null };

const percent = Number(process.env["GANGWAY_MUTATION_SAMPLE"] ?? 100);
const seed = process.env["GANGWAY_MUTATION_SEED"] ?? "1";

const DECLARATIONS = ["FunctionDeclaration", "VariableDeclaration", "ClassMethod", "ClassPrivateMethod"];
const TOP = ["Program", "ExportNamedDeclaration", "ClassBody"];

export const strykerPlugins = [declareValuePlugin(PluginKind.Ignore, "gangway", { shouldIgnore })];

function shouldIgnore(path: Path): string | undefined {
  const { node, parent } = path;
  if (node.type === "StringLiteral" && typeof node.value === "string" && node.value.includes(" "))
    return "a text for people";
  if (node.type === "TemplateLiteral") return "a text for people";
  const isDeclaration = DECLARATIONS.includes(node.type) && TOP.includes(parent?.type ?? "");
  return isDeclaration && !isInSample(node) ? "not in the sample" : undefined;
}

/** By the place of the declaration alone, so that one seed always gives one sample of one version of a file. */
function isInSample(node: Node): boolean {
  if (percent >= 100) return true;
  const hash = createHash("sha256")
    .update(`${seed} ${node.start ?? 0}`)
    .digest();
  return hash.readUInt32BE(0) % 100 < percent;
}
