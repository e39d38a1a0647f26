/** The longest part of a server's message that is read. */
const READ_CHARS_MAX = 4_096;

/** Words of an API server that refuses an object until somebody changes the cluster, and what has to change. */
const REMEDIES: readonly { readonly words: readonly string[]; readonly remedy: string }[] = [
  { words: ["exceeded quota"], remedy: "the namespace's ResourceQuota must have room there" },
  { words: ["failed quota"], remedy: "the pods must set what the namespace's ResourceQuota requires" },
  { words: ["serviceaccount", "service account"], remedy: "the service account must exist there" },
  { words: ["priorityclass"], remedy: "the priority class must exist there" },
  { words: ["runtimeclass"], remedy: "the runtime class must exist there" },
  { words: ["is being terminated"], remedy: "the namespace must exist there, and must not be terminating" },
  { words: ["violates podsecurity"], remedy: "the namespace's Pod Security level must allow the pods" },
  { words: ["admission webhook"], remedy: "the cluster's admission webhook must allow the pods" },
  { words: ["cannot create resource"], remedy: "Gangway's account there needs the permission" },
];

/**
 * What has to change in a cluster before it takes an object that it has refused. Null: a retry may succeed, as after an
 * error of the server. Never throws. Source: the admission plugins of kube-apiserver, which answer Forbidden, and
 * NotFound for a missing namespace.
 */
export function remedyOf({ reason, message }: { readonly reason: string; readonly message: string }): string | null {
  const text = message.slice(0, READ_CHARS_MAX).toLowerCase();
  if (reason === "NotFound" && text.includes("namespaces ")) return "the namespace must exist there";
  if (reason !== "Forbidden") return null;
  const found = REMEDIES.find(({ words }) => words.some((word) => text.includes(word)));
  return found?.remedy ?? "the cluster must allow the object";
}
