/** Takes clusters that a caller may not see out of words about another cluster. */

/** Where such words name another cluster, and what is said instead. The second group is its name; the others stay. */
const NAMED: readonly (readonly [words: RegExp, instead: string])[] = [
  // As `describeUidRefusal` says it.
  [/( is the same Kubernetes cluster as )(\S+?)(: )/g, "another cluster"],
  [/( A cluster has one name: use )(\S+?)(, or remove )/g, "that one"],
  // As `secretText`, `judgeSource` and the deletion of a cluster say it.
  [/(the )Secret \S+ of cluster ([^\s:;]+)/g, "Secret of another cluster"],
  [/( has the Secret with the kubeconfig of )cluster (\S+)/g, "another cluster"],
  [/(^|in use by )cluster (\S+?)(, whose kubeconfig is in a Secret there)/g, "another cluster"],
];

export function withoutHiddenClusters(text: string, maySee: (name: string) => boolean): string {
  return NAMED.reduce(
    (told, [words, instead]) =>
      told.replace(words, (all: string, before: string, name: string, after: string | number) =>
        maySee(name) ? all : `${before}${instead}${typeof after === "string" ? after : ""}`,
      ),
    text,
  );
}
