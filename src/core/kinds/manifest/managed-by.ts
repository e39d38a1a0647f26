import type { Json } from "../../../runtime/json.ts";
import type { SentReader } from "./sent-reader.ts";

/** Kueue's controller for several clusters, which Gangway replaces. */
const KUEUE_MANAGER = "kueue.x-k8s.io/multikueue";
const MANAGER_SHOWN_MAX = 80;

/** Fails if a manifest names another manager than the kind's own controller, or Kueue's. Gangway replaces both. */
export function managedBy(reader: SentReader, value: Json | undefined, path: string, ownController: string): void {
  const manager = reader.text(value, path);
  if (!manager || manager === ownController || manager === KUEUE_MANAGER) return;
  reader.fail(path, `is managed by ${manager.slice(0, MANAGER_SHOWN_MAX)}; remove managedBy to run it here`);
}
