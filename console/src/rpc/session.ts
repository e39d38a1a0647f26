/** Whether the service knows the caller, and whether the page is of the service's version. */
import { useSyncExternalStore } from "react";

export type PageSession = {
  /** True: a call was answered that the service does not know its caller. */
  readonly isSignedOut: boolean;
  /** The version of the service, if it is not the one that the page was made for. Empty: they are the same. */
  readonly otherVersion: string;
};

let current: PageSession = { isSignedOut: false, otherVersion: "" };
const listeners = new Set<() => void>();

export function noteSignedOut(): void {
  change({ ...current, isSignedOut: true });
}

export function noteVersion(version: string | null): void {
  if (version !== null) change({ ...current, otherVersion: version === GANGWAY_VERSION ? "" : version });
}

export function useSession(): PageSession {
  return useSyncExternalStore(
    (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    () => current,
  );
}

function change(next: PageSession): void {
  if (next.isSignedOut === current.isSignedOut && next.otherVersion === current.otherVersion) return;
  current = next;
  for (const changed of listeners) changed();
}
