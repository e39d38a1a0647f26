/** Knows the certificate that the client of each connection has shown, so that no call need read it again. */
import type { Http2SecureServer } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { ServerInterceptingCall } from "@grpc/grpc-js";
import type { Credentials, PeerCertificate } from "../core/access/identity.ts";

export type ConnectionInfo = ReturnType<ServerInterceptingCall["getConnectionInfo"]>;
type Shown = Exclude<Credentials["certificate"], null>;

/** Of one server. Knows connections by both their ends: several clients may have one address and port. */
export class PeerCertificates {
  readonly #byConnection = new Map<string, Shown>();

  /** Call it for each listener that asks its clients for certificates. */
  follow(listener: Http2SecureServer): void {
    listener.prependListener("secureConnection", (socket) => {
      const shown = shownBy(socket);
      if (shown === null) return;
      const key = keyOf(socket);
      this.#byConnection.set(key, shown);
      socket.once("close", () => {
        if (this.#byConnection.get(key) === shown) this.#byConnection.delete(key);
      });
    });
  }

  /** Null: the client has shown none. */
  of(connection: ConnectionInfo): Shown | null {
    return this.#byConnection.get(keyOf(connection)) ?? null;
  }
}

type Ends = { readonly [Name in keyof ConnectionInfo]?: ConnectionInfo[Name] | undefined };

function keyOf({ localAddress, localPort, remoteAddress, remotePort }: Ends): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`;
}

function shownBy(socket: TLSSocket): Shown | null {
  const { subject, subjectaltname, valid_to } = socket.getPeerCertificate();
  if (valid_to === undefined) return null;
  if (!socket.authorized) return { invalid: String(socket.authorizationError ?? "no authority has signed it") };
  const names = alternativeNames(subjectaltname ?? "");
  if (names === null) return { invalid: "its alternative names cannot be read" };
  const { CN, O } = subject as { readonly CN?: string | string[]; readonly O?: string | string[] };
  const certificate: PeerCertificate = {
    uris: names.flatMap(([kind, name]) => (kind === "URI" ? [name] : [])),
    dnsNames: names.flatMap(([kind, name]) => (kind === "DNS" ? [name] : [])),
    commonName: typeof CN === "string" ? CN : null,
    organizations: O === undefined ? [] : [O].flat(),
    expiresAtMs: Date.parse(valid_to),
  };
  return certificate;
}

/** A kind and a name. Node quotes names with special characters like JSON does. */
const NAME = /(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^",]*)/y;

/** Null: the text is not as Node writes it. */
export function alternativeNames(text: string): readonly (readonly [kind: string, name: string])[] | null {
  const names: (readonly [string, string])[] = [];
  let at = 0;
  while (at < text.length) {
    NAME.lastIndex = at;
    const found = NAME.exec(text);
    if (found === null) return null;
    const [, kind = "", value = ""] = found;
    names.push([kind, value.startsWith('"') ? (JSON.parse(value) as string) : value]);
    at = NAME.lastIndex;
  }
  return names;
}
