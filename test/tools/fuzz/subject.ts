/** The service under test: a child process, with the database that it keeps. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { waitUntil, within } from "../../support/bounded.ts";
import { newDataFolder } from "../../support/data-folder.ts";
import { createDatabase } from "../../support/postgres.ts";
import type { Reading } from "./meter.ts";
import type { Footprint, Order, Stall } from "./monitor.ts";

const MAIN = fileURLToPath(new URL("../../../src/main.ts", import.meta.url));
const MONITOR = new URL("monitor.ts", import.meta.url).href;
const ORDER_MS_MAX = 120_000;
const OUTPUT_KEPT = 20_000;
const CREDENTIALS_KEY = Buffer.alloc(32, 7).toString("base64");

export type SubjectOptions = {
  /** A PostgreSQL server, on which the service gets a database of its own. Null: the service is embedded. */
  readonly postgres: string | null;
  /** Null: the service counts tokens itself. */
  readonly redis: string | null;
  /** More variables of the service. Omitted: none. */
  readonly env?: Readonly<Record<string, string>>;
};

type Row = Readonly<Record<string, unknown>>;
type Question = Order extends infer One ? (One extends Order ? Omit<One, "id"> : never) : never;

export class Subject {
  readonly #child: ChildProcess;
  readonly #log: string | null;
  readonly #parts: AsyncDisposableStack;
  readonly #database: pg.Client | null;
  #output = "";
  #logRead = 0;
  #orders = 0;
  readonly #waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();

  private constructor(
    child: ChildProcess,
    of: { log: string | null; database: pg.Client | null },
    parts: AsyncDisposableStack,
  ) {
    this.#child = child;
    this.#log = of.log;
    this.#database = of.database;
    this.#parts = parts;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.#output += chunk.toString();
      });
    }
    child.on("message", ({ id, result, error }: { id: number; result?: unknown; error?: string }) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(error));
    });
    child.on("exit", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the service has ended"));
      this.#waiting.clear();
    });
  }

  static async start({ postgres, redis, env = {} }: SubjectOptions): Promise<Subject> {
    await using parts = new AsyncDisposableStack();
    const folder = newDataFolder("gangway-fuzz-");
    parts.defer(() => rmSync(folder, { recursive: true, force: true }));
    let url = "";
    let database: pg.Client | null = null;
    if (postgres !== null) {
      const created = await createDatabase(postgres);
      parts.defer(created.drop);
      url = created.url;
      const client = new pg.Client({ connectionString: url, application_name: "fuzz" });
      client.on("error", () => {});
      await client.connect();
      parts.defer(() => client.end());
      database = client;
    }
    const serve = ["serve", "--listen", "127.0.0.1:0"];
    const up = ["up", "--no-examples", "--data", folder, "--listen", "127.0.0.1:0"];
    const child = fork(MAIN, postgres === null ? up : serve, {
      execArgv: ["--expose-gc", "--import", MONITOR],
      env: {
        ...process.env,
        DATABASE_URL: url,
        REDIS_URL: redis ?? "",
        NAMESPACES: "open",
        GANGWAY_CREDENTIALS_KEY: CREDENTIALS_KEY,
        // The clusters of the fuzz, and no other machine, whatever a kubeconfig names.
        GANGWAY_CLUSTER_HOSTS: "127.0.0.0/8,::1/128",
        GANGWAY_CONSOLE_LISTEN: "127.0.0.1:0",
        GANGWAY_LOG_LEVEL: "info",
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    parts.defer(async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill("SIGKILL");
        await once(child, "exit");
      }
    });
    const log = postgres === null ? join(folder, "gangway.log") : null;
    const subject = new Subject(child, { log, database }, parts.move());
    await waitUntil("the service listens", () => {
      if (subject.hasEnded) throw new Error(`the service ended: ${subject.#output}`);
      return subject.address !== "" && subject.url !== "";
    });
    return subject;
  }

  get address(): string {
    return /listening on (\S+)/.exec(this.#output)?.[1] ?? "";
  }

  /** Where it serves HTTP. */
  get url(): string {
    return /· console (\S+)/.exec(this.#output)?.[1] ?? "";
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** The last of what it wrote. */
  get output(): string {
    return this.#output.slice(-OUTPUT_KEPT);
  }

  /** All that it has logged, of every level. */
  logged(): string {
    return this.#log === null ? this.#output : readFileSync(this.#log, "utf8");
  }

  /** Log lines of level error since the last look. */
  newErrors(): readonly string[] {
    const text = this.#log === null ? this.#output : existsSync(this.#log) ? readFileSync(this.#log, "utf8") : "";
    const lines = text.slice(this.#logRead);
    this.#logRead = text.lastIndexOf("\n") + 1;
    return lines.split("\n").filter((line) => /^\{"level":(50|60),/.test(line));
  }

  footprint(): Promise<Footprint> {
    return this.#ask({ kind: "measure" }) as Promise<Footprint>;
  }

  stalls(): Promise<readonly Stall[]> {
    return this.#ask({ kind: "stalls" }) as Promise<readonly Stall[]>;
  }

  /** What it has used so far. `collect`: its garbage is collected first. */
  meter(collect = false): Promise<Reading> {
    return this.#ask({ kind: "meter", collect }) as Promise<Reading>;
  }

  /** The CPU time, in milliseconds, that its thread takes now for work that is always the same. */
  yardstickMs(): Promise<number> {
    return this.#ask({ kind: "yardstick" }) as Promise<number>;
  }

  /** Rows of its database, which the service itself does not notice. */
  async query(sql: string): Promise<readonly Row[]> {
    if (this.#database !== null) return (await this.#database.query(sql)).rows;
    return (await this.#ask({ kind: "query", sql })) as readonly Row[];
  }

  /** The number of the service's connections to its server; null if it is embedded. */
  async connections(): Promise<number | null> {
    if (this.#database === null) return null;
    const [row] = await this.query(
      "select count(*)::int as n from pg_stat_activity " +
        "where datname = current_database() and application_name <> 'fuzz'",
    );
    return Number(row?.["n"]);
  }

  /** Stops it as an operator does, and returns its exit status. */
  async stop(): Promise<number | null> {
    const exited = this.hasEnded ? Promise.resolve([]) : once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await within("the end of the service", ORDER_MS_MAX, exited);
    await this.#parts.disposeAsync();
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }

  async #ask(question: Question): Promise<unknown> {
    this.#orders += 1;
    const id = this.#orders;
    const answered = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    if (this.hasEnded) throw new Error("the service has ended");
    this.#child.send({ ...question, id });
    return within(`the answer of the monitor to ${question.kind}`, ORDER_MS_MAX, answered);
  }
}
