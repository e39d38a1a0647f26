/** Opens the listener for browsers beside the one of gRPC, where the operator asks for it. */
import { tryListen } from "../../runtime/listen-address.ts";
import type { ServerTls } from "../../runtime/server-tls.ts";
import { allowedAddress, type Exposure } from "../exposure.ts";
import type { WebPorts } from "./door.ts";
import { startWeb, WEB_SETTING, type WebDoor, type WebOptions } from "./web-server.ts";

export type WebListen = Pick<WebOptions, "hosts" | "trustedProxies" | "page"> & {
  /** HOST:PORT. */
  readonly listen: string;
  /** True: if the address cannot be had, the API is served without this listener. */
  readonly isOptional: boolean;
};

/** `missing`: an optional listener could not have its address, and why. */
export type WebOutcome =
  | { readonly kind: "off" }
  | { readonly kind: "missing"; readonly why: string }
  | (Pick<WebDoor, "url" | "address" | "connections"> & { readonly kind: "serves" });

type WebSettings = Omit<Exposure, "listen" | "tls"> &
  Pick<WebOptions, "bounds" | "bytesMax"> & { readonly tls: ServerTls | null; readonly web?: WebListen | null };

/**
 * Callers of this listener have the roles, limits and turns of those of gRPC. It asks for no client certificates.
 * Throws if calls would not be protected there, or if it cannot listen and has to.
 */
export async function openWeb(
  ports: WebPorts,
  { web, ...options }: WebSettings,
): Promise<{ readonly web: WebDoor | null; readonly shown: WebOutcome }> {
  if (web === undefined || web === null) return { web: null, shown: { kind: "off" } };
  const address = allowedAddress({ ...options, listen: web.listen });
  try {
    const door = await startWeb(ports, { ...options, ...web, ...address });
    return { web: door, shown: { ...door, kind: "serves" } };
  } catch (error) {
    if (!web.isOptional) throw error;
    return { web: null, shown: { kind: "missing", why: error instanceof Error ? error.message : String(error) } };
  }
}

/** Throws what `openWeb` would throw because of its address. */
export async function checkWeb(exposure: Omit<Exposure, "listen">, web: WebListen | null): Promise<void> {
  if (web === null || web.isOptional) return;
  await tryListen(allowedAddress({ ...exposure, listen: web.listen }), WEB_SETTING);
}
