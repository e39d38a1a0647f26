import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** The kinds of messages of a client (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
const PARSE = 0x50;
const BIND = 0x42;
const QUERY = 0x51;
const EXECUTE = 0x45;
/** One byte of kind, and four of length, which count themselves. */
const HEAD_BYTES = 5;

/** A proxy before PostgreSQL that counts the statements of all connections by their text. */
export class StatementCounter {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #counts = new Map<string, number>();

  private constructor(target: { readonly host: string; readonly port: number }) {
    this.#server = createServer({ noDelay: true }, (client) =>
      this.#join(client, connect({ ...target, noDelay: true })),
    );
  }

  static async start(target: { readonly host: string; readonly port: number }): Promise<StatementCounter> {
    const counter = new StatementCounter(target);
    counter.#server.listen(0, "127.0.0.1");
    await once(counter.#server, "listening");
    return counter;
  }

  /** HOST:PORT */
  get address(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    return `127.0.0.1:${address.port}`;
  }

  /** The counts since the last call, the most frequent first. */
  take(): readonly (readonly [statement: string, count: number])[] {
    const counts = [...this.#counts].sort(([, a], [, b]) => b - a);
    this.#counts.clear();
    return counts;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #join(client: Socket, server: Socket): void {
    const reader = new FrontendReader((statement) => {
      this.#counts.set(statement, (this.#counts.get(statement) ?? 0) + 1);
    });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
    client.on("data", (chunk: Buffer) => reader.take(chunk));
    client.pipe(server);
    server.pipe(client);
  }
}

/** Reads what a client sends to PostgreSQL, and tells the text of each statement that it runs. */
class FrontendReader {
  readonly #ran: (statement: string) => void;
  #rest: Buffer = Buffer.alloc(0);
  #started = false;
  readonly #texts = new Map<string, string>();
  #bound = "";

  constructor(ran: (statement: string) => void) {
    this.#ran = ran;
  }

  take(chunk: Buffer): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      // The first message has no kind.
      const head = this.#started ? 1 : 0;
      if (this.#rest.length < HEAD_BYTES) return;
      const end = head + this.#rest.readUInt32BE(head);
      if (this.#rest.length < end) return;
      const message = this.#rest.subarray(0, end);
      this.#rest = this.#rest.subarray(end);
      if (this.#started) this.#read(message[0] ?? 0, message.subarray(HEAD_BYTES));
      this.#started = true;
    }
  }

  #read(kind: number, body: Buffer): void {
    const [first = "", second = ""] = body.toString("latin1").split("\0", 2);
    if (kind === QUERY) this.#ran(first);
    else if (kind === PARSE) this.#texts.set(first, second);
    else if (kind === BIND) this.#bound = second;
    else if (kind === EXECUTE) this.#ran(this.#texts.get(this.#bound) ?? "");
  }
}
