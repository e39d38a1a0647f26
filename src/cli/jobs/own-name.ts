import { AccessService } from "../../gen/gangway/v1/access_service_pb.ts";
import type { Run } from "../run/run-command.ts";

/** The name under which the service records this caller as the creator of jobs. */
export async function ownName({ client }: Pick<Run, "client">): Promise<string> {
  const { identity } = await client.call(AccessService.method.whoAmI, {});
  return identity?.subject ?? "";
}
