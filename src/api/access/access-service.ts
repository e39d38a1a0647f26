import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { AccessService } from "../../gen/gangway/v1/access_service_pb.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";

export function accessService(): ServiceHandlers<typeof AccessService> {
  return {
    whoAmI: async (_request, { identity: { subject, groups, method, issuer, expiresAtMs } }) => {
      const expires = expiresAtMs === null ? {} : { expireTime: timestampFromMs(expiresAtMs) };
      return { identity: { subject, groups: [...groups], method, issuer, ...expires } };
    },
  };
}
