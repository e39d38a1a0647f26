import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

type Query = { state: "running" | "succeeded" | "failed"; rows: number; readonly statement: string };

/**
 * A foreign service that runs queries. A client puts a query under a name once, reads it until it has ended, and
 * deletes it.
 */
export class Warehouse implements AsyncDisposable {
  readonly queries = new Map<string, Query>();
  /** Names in the order in which they were first put, and those that were deleted. */
  readonly started: string[] = [];
  readonly deleted: string[] = [];
  /** The largest number of queries that ran at a time. */
  together = 0;
  /** The number of puts, and the process of the last one (header `x-process`). */
  puts = 0;
  calledBy = "";
  /** True: it carries out requests and does not answer them. */
  stalls = false;
  /** A query succeeds after this many reads. One whose statement contains `forever` never ends. */
  looks = 2;
  readonly #server: Server;
  readonly #password: string;

  private constructor(password: string) {
    this.#password = password;
    this.#server = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      request.on("end", () => {
        const allowed = request.headers.authorization === `Bearer ${this.#password}`;
        const name = (request.url ?? "").replace(/^\/queries\//, "");
        const query = allowed ? this.#answer(request.method ?? "", name, body) : undefined;
        this.calledBy = String(request.headers["x-process"] ?? "");
        if (this.stalls) return;
        response.writeHead(query === undefined ? 401 : query === null ? 404 : 200, {
          "content-type": "application/json",
        });
        response.end(JSON.stringify(query ?? {}));
      });
    });
  }

  static async open(password: string): Promise<Warehouse> {
    const warehouse = new Warehouse(password);
    warehouse.#server.listen(0, "127.0.0.1");
    await once(warehouse.#server, "listening");
    return warehouse;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get running(): number {
    return [...this.queries.values()].filter(({ state }) => state === "running").length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #answer(method: string, name: string, body: string): Query | null {
    const known = this.queries.get(name);
    this.puts += Number(method === "PUT");
    if (method === "PUT" && known === undefined) {
      const { statement } = JSON.parse(body) as { statement: string };
      this.queries.set(name, { state: "running", rows: 0, statement });
      this.started.push(name);
      this.together = Math.max(this.together, this.running);
    } else if (method === "DELETE" && known !== undefined) {
      this.queries.delete(name);
      this.deleted.push(name);
    } else if (method === "GET" && known?.state === "running") {
      known.rows += 1;
      if (known.rows >= this.looks && !known.statement.includes("forever")) known.state = "succeeded";
    }
    return this.queries.get(name) ?? known ?? null;
  }
}
