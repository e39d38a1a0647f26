import type { MessageInitShape } from "@bufbuild/protobuf";
import type { KeyRecord } from "../../core/admin/credential-keys.ts";
import type { ClusterService, CredentialKeySchema } from "../../gen/gangway/v1/cluster_service_pb.ts";
import type { ClusterAdmin } from "../ports.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { failedPrecondition } from "../rpc/rpc-error.ts";

type KeyHandlers = Pick<ServiceHandlers<typeof ClusterService>, "listCredentialKeys" | "rotateCredentialKeys">;

/** Lists and rotates the keys that encrypt credentials of clusters. */
export function keyHandlers(clusters: Pick<ClusterAdmin, "listKeys" | "rotateKeys">): KeyHandlers {
  return {
    listCredentialKeys: async () => ({ keys: (await clusters.listKeys()).map(toProtoKey) }),
    rotateCredentialKeys: async ({ to }, { signal }) => {
      const outcome = await clusters.rotateKeys(to, signal);
      switch (outcome.kind) {
        case "done":
          return {
            changed: outcome.changed,
            keys: outcome.keys.map(toProtoKey),
            problems: outcome.problems.map((problem) => ({ ...problem })),
          };
        case "noKey":
          throw refused(
            "NO_CREDENTIALS_KEY",
            "cannot be encrypted again: the server has no key; set GANGWAY_CREDENTIALS_KEYS_FILE",
          );
        case "otherKey":
          throw refused(
            "OTHER_CREDENTIALS_KEY",
            `are encrypted with ${outcome.current} by the server that answered, as its file says; ` +
              "a changed file is read within seconds",
          );
      }
    },
  };
}

function refused(type: string, description: string) {
  return failedPrecondition({ type, subject: "credentials of clusters", description });
}

function toProtoKey({ name, isCurrent, isKnown, clusters }: KeyRecord): MessageInitShape<typeof CredentialKeySchema> {
  return { name, current: isCurrent, known: isKnown, clusters: [...clusters] };
}
