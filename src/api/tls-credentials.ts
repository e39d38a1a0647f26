import { ServerCredentials } from "@grpc/grpc-js";
import type { ServerTls } from "../runtime/server-tls.ts";
import { HANDSHAKE_MS } from "./connection-bounds.ts";

/** Credentials of a server of grpc-js whose certificate changes while it serves. */
export class TlsCredentials extends ServerCredentials {
  constructor(tls: ServerTls) {
    const requestCert = tls.clients !== "none";
    const rejectUnauthorized = tls.clients === "required";
    super({ requestCert, rejectUnauthorized, handshakeTimeout: HANDSHAKE_MS }, { ...tls.context() });
    tls.onChange((context) => this.updateSecureContextOptions({ ...context }));
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}
