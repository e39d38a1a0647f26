import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/**
 * The fault of the next request: the request never arrives, or it arrives and its answer is lost. The proxy then cuts
 * the connection.
 */
export type Cut = "request" | "answer";

/** A proxy between a client and a server on this machine. It cuts connections at an exact point. */
export class CuttingProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** The number of lost requests and answers. */
  cuts = 0;
  #next: { readonly cut: Cut; after: number } | null = null;

  private constructor(target: number) {
    this.#server = createServer((client) => this.#join(client, connect(target, "127.0.0.1")));
  }

  static async start(target: number): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    return `redis://127.0.0.1:${address.port}`;
  }

  /** Loses the next request or its answer, or a later one after this many others. */
  cutNext(cut: Cut, after = 0): void {
    this.#next = { cut, after };
  }

  /** Cancels a cut that no request has met. */
  cutNothing(): void {
    this.#next = null;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** The cut that is due at a request. */
  #take(): Cut | null {
    const next = this.#next;
    if (next === null) return null;
    next.after -= 1;
    if (next.after >= 0) return null;
    this.#next = null;
    this.cuts += 1;
    return next.cut;
  }

  #join(client: Socket, upstream: Socket): void {
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", end);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        end();
      });
    }
    let losing = false;
    client.on("data", (bytes) => {
      const cut = this.#take();
      if (cut === "request") return end();
      losing ||= cut === "answer";
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      if (losing) end();
      else client.write(bytes);
    });
  }
}
