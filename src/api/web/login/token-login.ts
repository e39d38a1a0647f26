/** Logs a browser in with a token that its user has pasted, such as that of a robot. */
import { status } from "@grpc/grpc-js";
import { isJsonObject, type Json } from "../../../runtime/json.ts";
import type { EnteringOptions } from "../../rpc/authentication.ts";
import { errorInfo } from "../../rpc/error-details.ts";
import { invalidFields, RpcError, undecodable } from "../../rpc/rpc-error.ts";
import { BODY_MS } from "../connections.ts";
import { checkLength, readBody } from "../read-request.ts";
import { beginSession } from "./begin-session.ts";
import type { LoginAnswer, LoginRequest } from "./login-request.ts";

/** Room for the longest token. */
const BODY_BYTES_MAX = 32 * 1024;
const TOKEN = /^[!-~]{1,16384}$/;

export async function tokenLogin(of: LoginRequest, entering: EnteringOptions): Promise<LoginAnswer> {
  const token = readToken(await jsonBody(of, entering));
  const { subject, expiresAtMs, cookie } = await beginSession(of, { token, renewal: null }, entering);
  return { body: { subject, expireTime: new Date(expiresAtMs).toISOString() }, cookies: [cookie] };
}

/** Forms of other sites can send no JSON. */
async function jsonBody({ request, response, continues }: LoginRequest, { clock }: EnteringOptions): Promise<Json> {
  const type = request.headers["content-type"] ?? "";
  if (!/^application\/json *(;|$)/i.test(type)) {
    throw new RpcError(status.INVALID_ARGUMENT, "the content type must be application/json", [
      errorInfo("UNDECODABLE_REQUEST"),
    ]);
  }
  checkLength(request, BODY_BYTES_MAX);
  if (continues) response.writeContinue();
  const body = await readBody(request, { bytesMax: BODY_BYTES_MAX, arrivesMs: BODY_MS }, clock);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as Json;
  } catch {
    throw undecodable("the body is not JSON");
  }
}

function readToken(json: Json): string {
  const token = isJsonObject(json) && Object.keys(json).length === 1 ? json["token"] : undefined;
  if (typeof token === "string" && TOKEN.test(token.trim())) return token.trim();
  const message = "must be a text of 1 to 16384 printable characters without blanks, and the only member";
  throw invalidFields([{ field: "token", message }]);
}
