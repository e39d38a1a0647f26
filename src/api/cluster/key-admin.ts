/** Rotates the keys that encrypt credentials of clusters, while the clusters are in use. */

import {
  type CredentialKeys,
  type KeptCredentials,
  type KeyUse,
  keyRecords,
  type Reseal,
  type ResealedPage,
} from "../../core/admin/credential-keys.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { append } from "../../runtime/lists.ts";
import type { ClusterAdmin } from "../ports.ts";

export type KeyAdminPorts = {
  /** The keys that this process has now. */
  readonly keys: () => CredentialKeys;
  readonly table: {
    readonly listKeyUses: () => Promise<readonly KeyUse[]>;
    /** The same, with an entry of the audit log. */
    readonly readKeyUses: () => Promise<readonly KeyUse[]>;
    /** Encrypts some more credentials that another key encrypts: those of clusters after this name. */
    readonly resealCredentials: (
      page: { readonly key: string; readonly after: string },
      reseal: Reseal,
    ) => Promise<ResealedPage>;
  };
  /** Encrypts stored credentials of a cluster again. Throws if they do not decrypt; the message holds no credential. */
  readonly loadReseal: () => Promise<(stored: JsonObject, cluster: string, keys: CredentialKeys) => JsonObject>;
};

export function createKeyAdmin(ports: KeyAdminPorts): Pick<ClusterAdmin, "listKeys" | "rotateKeys"> {
  const { keys, table } = ports;
  return {
    listKeys: async () => keyRecords(keys(), await table.readKeyUses()),
    rotateKeys: async (to, signal) => {
      const wanted = to === "" ? keys().current : to;
      const loaded = await ports.loadReseal();
      const problems: KeptCredentials[] = [];
      let changed = 0;
      for (let after: string | null = ""; after !== null; ) {
        signal.throwIfAborted();
        // The file may change meanwhile: nothing is encrypted with a key that is not the current one any more.
        const now = keys();
        if (wanted === null || now.current === null) return { kind: "noKey" };
        if (now.current !== wanted) return { kind: "otherKey", current: now.current };
        const page = await table.resealCredentials({ key: wanted, after }, orWhy(loaded, now));
        changed += page.changed;
        append(problems, page.kept);
        after = page.last;
      }
      return { kind: "done", changed, keys: keyRecords(keys(), await table.listKeyUses()), problems };
    },
  };
}

function orWhy(reseal: Awaited<ReturnType<KeyAdminPorts["loadReseal"]>>, keys: CredentialKeys): Reseal {
  return (stored, cluster) => {
    try {
      return { kind: "sealed", credentials: reseal(stored, cluster, keys) };
    } catch (error) {
      return { kind: "kept", why: error instanceof Error ? error.message : String(error) };
    }
  };
}
