/** Turns statuses into errors of Connect, with their details. */
import { fromBinary, type Registry } from "@bufbuild/protobuf";
import { type Any, anyUnpack } from "@bufbuild/protobuf/wkt";
import { type Code, ConnectError } from "@connectrpc/connect";
import { type StatusObject, status } from "@grpc/grpc-js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { DETAILS_KEY } from "../rpc/rpc-error.ts";

/** The codes of both have the same numbers. `registry` has the messages of details, which clients then read as JSON. */
export function connectError(failure: Partial<StatusObject>, registry: Registry): ConnectError {
  const [bytes] = failure.metadata?.get(DETAILS_KEY) ?? [];
  const details = bytes === undefined ? [] : fromBinary(StatusSchema, bytes as Buffer).details;
  const code = (failure.code ?? status.UNKNOWN) as number as Code;
  const known = details.flatMap((detail) => detailOf(detail, registry));
  return new ConnectError(failure.details ?? "", code, undefined, known);
}

function detailOf(any: Any, registry: Registry) {
  const value = anyUnpack(any, registry);
  const desc = value === undefined ? undefined : registry.getMessage(value.$typeName);
  return value === undefined || desc === undefined ? [] : [{ desc, value }];
}
