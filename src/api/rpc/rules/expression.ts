/**
 * Compiles the expressions of the proto files' rules to functions. It knows the part of CEL that these rules use, and
 * refuses everything else when a rule is compiled. An interpreter of CEL takes ten times as long for each value.
 */
import { parse } from "@bufbuild/cel";
import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import { characters } from "../../../runtime/characters.ts";
import { patternMatcher } from "../match-pattern.ts";

type Expression = ReturnType<typeof parse>["expr"];
type ExpressionOf<Case> = Extract<Expression["exprKind"], { readonly case: Case }>["value"];
/** `self`: the value that the rule is about. `item`: the item of a list that the expression goes through. */
type Evaluate = (self: unknown, item: unknown) => unknown;
/** `item`: the name of the variable of items. Null: no list is gone through. */
type Scope = { readonly source: string; readonly item: string | null };

/** Returns whether the expression holds for a value. Throws if the expression uses what is not known here. */
export function compileExpression(source: string): (self: unknown) => boolean {
  const evaluate = compile(parse(source).expr, { source, item: null });
  return (self) => evaluate(self, undefined) === true;
}

function compile({ exprKind }: Expression, scope: Scope): Evaluate {
  switch (exprKind.case) {
    case "constExpr":
      return constant(exprKind.value, scope);
    case "identExpr":
      return variable(exprKind.value.name, scope);
    case "selectExpr":
      return member(exprKind.value, scope);
    case "callExpr":
      return call(exprKind.value, scope);
    case "comprehensionExpr":
      return eachItem(exprKind.value, scope);
    default:
      throw unknown(String(exprKind.case), scope);
  }
}

function constant({ constantKind }: ExpressionOf<"constExpr">, scope: Scope): Evaluate {
  const { case: kind, value } = constantKind;
  if (kind === "int64Value") return () => Number(value);
  if (kind === "doubleValue" || kind === "stringValue" || kind === "boolValue") return () => value;
  throw unknown(String(kind), scope);
}

function variable(name: string, scope: Scope): Evaluate {
  if (name === "this") return (self) => self;
  if (name === scope.item) return (_, item) => item;
  throw unknown(name, scope);
}

function member({ operand, field, testOnly }: ExpressionOf<"selectExpr">, scope: Scope): Evaluate {
  if (operand === undefined || testOnly) throw unknown(`a test of ${field}`, scope);
  const of = compile(operand, scope);
  const name = protoCamelCase(field);
  return (self, item) => (of(self, item) as Readonly<Record<string, unknown>>)[name];
}

function call({ target, function: name, args }: ExpressionOf<"callExpr">, scope: Scope): Evaluate {
  const parts = target === undefined ? args : [target, ...args];
  const [first, second] = parts.map((part) => compile(part, scope));
  const of = parts.length === 1 ? OF_ONE[name] : undefined;
  if (of !== undefined && first !== undefined) return (self, item) => of(first(self, item));
  const ofTwo = parts.length === 2 ? OF_TWO[name] : undefined;
  if (ofTwo === undefined || first === undefined || second === undefined) throw unknown(name, scope);
  return ofTwo(first, second);
}

/** `list.map(item, step)`, as the parser writes it: a sum of lists of one item each. */
function eachItem({ iterVar, iterRange, loopStep }: ExpressionOf<"comprehensionExpr">, scope: Scope): Evaluate {
  const sum = loopStep?.exprKind.case === "callExpr" ? loopStep.exprKind.value : undefined;
  const added = sum?.function === "_+_" ? sum.args[1]?.exprKind : undefined;
  const step = added?.case === "listExpr" ? added.value.elements[0] : undefined;
  if (iterRange === undefined || step === undefined || scope.item !== null) throw unknown("a loop", scope);
  const list = compile(iterRange, scope);
  const each = compile(step, { ...scope, item: iterVar });
  return (self) => (list(self, undefined) as readonly unknown[]).map((item) => each(self, item));
}

const OF_ONE: Readonly<Record<string, (value: unknown) => unknown>> = {
  "!_": (value) => value !== true,
  size: (value) => (typeof value === "string" ? characters(value) : (value as readonly unknown[]).length),
  bytes: (value) => Buffer.from(value as string),
  unique: (list) => new Set(list as readonly unknown[]).size === (list as readonly unknown[]).length,
};

type OfTwo = (first: Evaluate, second: Evaluate) => Evaluate;

const OF_TWO: Readonly<Record<string, OfTwo>> = {
  "_&&_": (first, second) => (self, item) => first(self, item) === true && second(self, item) === true,
  "_||_": (first, second) => (self, item) => first(self, item) === true || second(self, item) === true,
  "_==_": (first, second) => (self, item) => first(self, item) === second(self, item),
  "_!=_": (first, second) => (self, item) => first(self, item) !== second(self, item),
  "_>_": compared((first, second) => first > second),
  "_>=_": compared((first, second) => first >= second),
  "_<_": compared((first, second) => first < second),
  "_<=_": compared((first, second) => first <= second),
  startsWith: (text, start) => (self, item) => String(text(self, item)).startsWith(String(start(self, item))),
  matches: (text, pattern) => {
    const source = pattern(undefined, undefined);
    if (typeof source !== "string") throw new Error("the patterns of rules must be constants");
    const matcher = patternMatcher(source);
    return (self, item) => matcher(String(text(self, item)));
  },
};

function compared(holds: (first: number, second: number) => boolean): OfTwo {
  return (first, second) => (self, item) => holds(Number(first(self, item)), Number(second(self, item)));
}

function unknown(what: string, { source }: Scope): Error {
  return new Error(`the expression ${source} uses ${what}, which the rules of the proto files must not use`);
}
