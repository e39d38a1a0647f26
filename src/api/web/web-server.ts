/** Serves the RPCs to browsers and to programs that speak HTTP, beside gRPC. README.md says how a request goes. */
import { formatAddress, type ListenAddress, listenError } from "../../runtime/listen-address.ts";
import type { ServerTls } from "../../runtime/server-tls.ts";
import type { ConnectionBounds } from "../connection-bounds.ts";
import { toStatus } from "../rpc/rpc-error.ts";
import type { WebResponse } from "./answers.ts";
import { createWebServer, OpenConnections } from "./connections.ts";
import { Door, type DoorParts, type WebPorts } from "./door.ts";
import { OpenAnswers } from "./open-answers.ts";
import type { WebRequest } from "./read-request.ts";

export type WebOptions = ListenAddress &
  Pick<DoorParts, "hosts" | "bytesMax" | "trustedProxies" | "page"> & {
    readonly tls: ServerTls | null;
    readonly bounds: ConnectionBounds;
  };

/** A listener for browsers. */
export type WebDoor = {
  /** HOST:PORT with the actual port. */
  readonly address: string;
  readonly url: string;
  readonly connections: () => number;
  /** Takes no more connections and calls. */
  readonly stop: () => void;
  /** Resolves once no call is under way. */
  readonly ended: () => Promise<void>;
  /** Closes every connection. */
  readonly close: () => Promise<void>;
};

/** Where an operator chooses the address. */
export const WEB_SETTING = "GANGWAY_CONSOLE_LISTEN";

/** Throws an error that says why it cannot listen. */
export async function startWeb(ports: WebPorts, options: WebOptions): Promise<WebDoor> {
  const { host, port, tls } = options;
  const server = createWebServer(tls, options.bounds);
  const connections = new OpenConnections(server);
  const answers = new OpenAnswers(ports.clock);
  const stopping = new AbortController();
  const door = new Door(ports, {
    ...options,
    listenHost: host,
    answers,
    stopping: stopping.signal,
    hasTls: tls !== null,
  });
  const handle = (request: unknown, response: unknown, continues: boolean) => {
    door.handle(request as WebRequest, response as WebResponse, continues).catch((cause: unknown) => {
      toStatus(cause, ports.onInternalError);
      (response as WebResponse).destroy();
    });
  };
  server.on("request", (request, response) => handle(request, response, false));
  server.on("checkContinue", (request, response) => handle(request, response, true));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(listenError(formatAddress({ host, port }), error, WEB_SETTING)));
    server.listen({ host, port }, resolve);
  });
  const bound = server.address();
  const address = formatAddress({ host, port: typeof bound === "object" && bound !== null ? bound.port : port });
  const closed = new AbortController();
  void answers.watch(closed.signal);
  return {
    address,
    url: `${tls === null ? "http" : "https"}://${address}`,
    connections: () => connections.count,
    stop: () => {
      if (stopping.signal.aborted) return;
      stopping.abort("stopping");
      server.close();
      connections.sayGoodbye();
    },
    ended: () => answers.ended(),
    close: async () => {
      const left = new Promise<void>((resolve) => server.once("close", resolve));
      const isOpen = server.listening || connections.count > 0;
      server.close();
      connections.destroy();
      closed.abort("closed");
      if (isOpen) await left;
    },
  };
}
