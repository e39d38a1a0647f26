/** Where Gangway knowingly judges otherwise than the API server of the tests. */
import { type JsonObject, objectAt, stringAt } from "../../../src/runtime/json.ts";

export type LeftOver = {
  /** Found in what the one that refuses says, which names the path. */
  readonly path: RegExp;
  readonly because: string;
  /** Omitted: in every pod. */
  readonly onlyIf?: (spec: JsonObject) => boolean;
};

type Side = "only Gangway refuses" | "only Kubernetes refuses";

const LEFT_OVER: Readonly<Record<Side, readonly LeftOver[]>> = {
  "only Gangway refuses": [
    {
      path: / is "[^"0-9]*": must be a quantity/,
      because: "Kubernetes reads an amount without digits, such as Gi or m, as 0: its user has left out the number",
    },
    {
      path: / is "(?:[^"]{40,}|[^"]*[eE][+-]?[0-9]{3,})[^"]*": must be a quantity/,
      because: "an amount of more than 40 characters, or of more than 99 digits, is no amount of a node",
    },
  ],
  "only Kubernetes refuses": [
    {
      path: /priority admission controller computed|Pod's Overhead doesn't match|without corresponding RuntimeClass/,
      because: "it depends on the priority class or the runtime class, which only the cluster knows",
      onlyIf: (spec) => Boolean(stringAt(spec, "priorityClassName") || stringAt(spec, "runtimeClassName")),
    },
    {
      path: /no PriorityClass with name \S+ was found/,
      because: "the test cannot make a class of this name, because it begins as those of the system do",
    },
    {
      path: /metadata\.annotations\.scheduler\.alpha\.kubernetes\.io\/tolerations/,
      because: "of the annotation that Kubernetes 1.5 had for tolerations only the form is judged",
    },
  ],
};

/** What excuses a difference. Null: nothing. */
export function leftOverOf(side: Side, said: string, pod: JsonObject): LeftOver | null {
  const spec = objectAt(pod, "spec");
  return LEFT_OVER[side].find(({ path, onlyIf }) => path.test(said) && onlyIf?.(spec) !== false) ?? null;
}

/** Why Gangway refuses names of jobs whose objects an API server would take. */
const JOB_LEFT_OVER: readonly LeftOver[] = [
  {
    path: /begins? with a letter/,
    because: "services have the names of jobs, and before Kubernetes 1.36 they begin with a letter",
  },
  { path: /must be a DNS label/, because: "the name of a job is a DNS label whether or not its kind has services" },
  {
    path: /is too long: with "|must be at most 50 /,
    because: "a longer name would become a hash, by which no user finds the pods",
  },
];

/** What excuses that Gangway alone refuses a job with these errors. Null: one of them has no excuse. */
export function jobLeftOverOf(errors: readonly string[]): LeftOver | null {
  const found = errors.map((error) => JOB_LEFT_OVER.find(({ path }) => path.test(error)));
  return found.includes(undefined) ? null : (found[0] ?? null);
}
