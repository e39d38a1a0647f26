/**
 * One run: callers of one tenant call everything, with names of another tenant. Nothing of the other tenant changes,
 * and no answer tells of it.
 */
import type { GangwayClient } from "../../../../src/cli/rpc/client.ts";
import { JobService } from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import { waitUntil } from "../../../support/bounded.ts";
import { Bank } from "../bank.ts";
import { clientOf } from "../baseline.ts";
import { type Answer, Caller, framed } from "../caller.ts";
import { Chance } from "../chance.ts";
import { changedTables, type Digests, digester } from "../digest.ts";
import { Findings } from "../findings.ts";
import type { FuzzOptions, FuzzReport } from "../fuzz.ts";
import { bounds, learn } from "../groups.ts";
import { Subject } from "../subject.ts";
import { pathOf, shortName } from "../surface.ts";
import { codeOf, problemsOf } from "../verdict.ts";
import { leaksOf, namesTheirs, OUR, spokenIn, type Uids } from "./names.ts";
import { planTenantCall, type TenantCall } from "./plan.ts";
import { difference } from "./twin.ts";
import { learnTheirs, makeOurJobs, makeTenants, ROLES, startCallers, startTenantClusters, subjectOf } from "./world.ts";

/** Jobs of the callers are removed after so many calls: thousands of them would only make calls slower. */
const CALLS_BETWEEN_CLEARS = 1_000;
const FINDINGS_MAX = 20;
/** How long a caller reads a stream at most. */
const STREAM_MS = 60;
const LEARN_SHARE = 0.3;

export type TenantFuzzOptions = Omit<FuzzOptions, "env"> & {
  /** After how many calls the other tenant's rows are compared: 1 tells which call has changed them. */
  readonly digestEvery: number;
};

export async function fuzzTenants(options: TenantFuzzOptions): Promise<FuzzReport> {
  await using parts = new AsyncDisposableStack();
  const callers = await startCallers(parts);
  const kubeconfigs = await startTenantClusters(parts);
  const subject = parts.use(await Subject.start({ ...options, env: callers.env }));
  const root = clientOf(subject, parts, callers.admin);
  const uids = await makeTenants(root, kubeconfigs);
  const theirs = await learnTheirs(root, uids);
  const caller = new Caller(subject.address, 1);
  parts.defer(() => caller.close());
  await makeOurJobs(root);
  const run = new TenantRun(options, { subject, caller, uids, theirs, tokens: callers.tokens });
  await run.start();
  const startMs = performance.now();
  for (let number = 0; number < options.calls; number += 1) {
    await run.call(number);
    if ((number + 1) % CALLS_BETWEEN_CLEARS === 0) {
      await run.rest(async () => {
        await clearOurs(root, subject);
        await makeOurJobs(root);
      });
    }
    const isLate = performance.now() - startMs > (options.secondsMax ?? Number.POSITIVE_INFINITY) * 1000;
    if (run.isOver || isLate) break;
  }
  const seconds = (performance.now() - startMs) / 1000;
  if (!subject.hasEnded) await run.rest(() => clearOurs(root, subject));
  return { ...run.result, seconds };
}

/** Removes the callers' jobs, as an admin. */
async function clearOurs(root: GangwayClient, subject: Subject): Promise<void> {
  const { namespace } = OUR;
  const count = `select count(*)::int as n from jobs where namespace = '${namespace}'`;
  await waitUntil("the jobs of the callers are gone", async () => {
    const { jobs } = await root.call(JobService.method.listJobs, { filter: { namespace }, pageSize: 1000 });
    for (const { metadata } of jobs) {
      await root.call(JobService.method.deleteJob, { namespace, name: metadata?.name ?? "" }).catch(() => undefined);
    }
    return (await subject.query(count))[0]?.["n"] === 0;
  });
}

/** The rows that belong to others. Of a table that is not named, all. */
function rowsOfOthers(): Readonly<Record<string, string>> {
  const subjects = ROLES.map((role) => `'${subjectOf(role)}'`).join(", ");
  const notOurs = `namespace <> '${OUR.namespace}'`;
  return {
    jobs: notOurs,
    request_ids: notOurs,
    // The log counts refused calls that it has no room for without their callers.
    audit_entries: `actor not in (${subjects}) and action <> 'PermissionDenied'`,
    // Tokens that the service passes on between jobs.
    token_heirs: "false",
  };
}

type TenantParts = {
  readonly subject: Subject;
  readonly caller: Caller;
  readonly uids: Uids;
  readonly theirs: Bank;
  readonly tokens: Readonly<Record<TenantCall["role"], string>>;
};

class TenantRun {
  readonly #options: TenantFuzzOptions;
  readonly #parts: TenantParts;
  readonly #bank = new Bank();
  readonly #spoken = new Set<string>();
  readonly #findings: Findings;
  readonly #counts = new Map<string, number>();
  #digest: () => Promise<Digests> = async () => ({});
  #before: Digests = {};
  #calls = 0;
  /** The last call, if the rows of others have not been compared since. */
  #notCompared: TenantCall | null = null;

  constructor(options: TenantFuzzOptions, parts: TenantParts) {
    this.#options = options;
    this.#parts = parts;
    const again = ({ number }: { number: number }) => `${number + 1} --tenant --seed ${options.seed}`;
    const call: Caller["call"] = (path, body, of) =>
      parts.caller.call(path, body, { ...of, headers: headersOf(parts.tokens.submitter) });
    this.#findings = new Findings({ ...options, caller: { call }, again });
  }

  async start(): Promise<void> {
    this.#digest = await digester(this.#parts.subject, { tokens: [] }, rowsOfOthers());
    this.#before = await this.#digest();
    this.#parts.subject.newErrors();
  }

  get isOver(): boolean {
    return this.#parts.subject.hasEnded || this.#findings.all.length >= FINDINGS_MAX;
  }

  get result(): Omit<FuzzReport, "seconds"> {
    return { calls: this.#calls, findings: this.#findings.all, stalls: [], counts: this.#counts };
  }

  /** Sends a call, and judges its answer and what it did. */
  async call(number: number): Promise<void> {
    const { uids, theirs } = this.#parts;
    const call = planTenantCall({ ...this.#options, bank: this.#bank, theirs }, number);
    this.#findings.sent(call);
    for (const name of spokenIn(call, uids)) this.#spoken.add(name);
    const answer = await this.#send(call);
    this.#calls += 1;
    const key = `${call.role} ${shortName(call.method)} ${codeOf(answer).split(" (")[0]}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    await this.#judge(call, answer);
    if (Chance.ofCall(this.#options.seed + 2, number).is(LEARN_SHARE)) learn(this.#bank, call, answer);
    await this.#findings.describe();
  }

  /** Lets the service come to rest, and takes what it has logged. */
  async rest(clear: () => Promise<void>): Promise<void> {
    if (this.#notCompared !== null) await this.#compareRows(this.#notCompared);
    await this.#findings.describe();
    await clear().catch((error: unknown) =>
      this.#findings.note(`what the callers made could not be removed: ${error}`),
    );
    for (const line of this.#parts.subject.newErrors()) this.#findings.note(`the service logged ${line}`);
    this.#before = await this.#digest();
    this.#options.print(`${this.#calls} calls`);
  }

  async #judge(call: TenantCall, answer: Answer): Promise<void> {
    const { uids, subject } = this.#parts;
    const report = (problem: string) => this.#findings.report({ call, problem: `${call.role}: ${problem}` });
    for (const problem of problemsOf(call.method, answer)) report(problem);
    for (const leak of leaksOf(call, answer, { uids, spoken: this.#spoken })) report(`told of another's: ${leak}`);
    if (namesTheirs(call.request, uids)) {
      const found = await difference(call, answer, { uids, send: (one) => this.#send({ ...one, role: call.role }) });
      if (found !== null) report(`differs, ${found}`);
    }
    if (subject.hasEnded) return this.#findings.note(`the service ended: ${subject.output}`);
    if (this.#calls % this.#options.digestEvery === 0) await this.#compareRows(call);
    else this.#notCompared = call;
  }

  /** Reports a change of the other tenant's rows since the last comparison. `last`: the last call since then. */
  async #compareRows(last: TenantCall): Promise<void> {
    this.#notCompared = null;
    const after = await this.#digest();
    const changed = changedTables(this.#before, after).join(", ");
    this.#before = after;
    if (changed === "") return;
    const since = this.#options.digestEvery === 1 ? "" : ", or a call shortly before it (--digest-every 1 tells which)";
    this.#findings.report({ call: last, problem: `${last.role}: changed ${changed} of others${since}` });
  }

  #send({ method, request, role, number }: TenantCall): Promise<Answer> {
    const { caller, tokens } = this.#parts;
    const ends = bounds({ method }, Chance.ofCall(this.#options.seed + 1, number));
    const leaveAfterMs =
      ends.leaveAfterMs === undefined ? {} : { leaveAfterMs: Math.min(ends.leaveAfterMs, STREAM_MS) };
    return caller.call(pathOf(method), framed(request), { ...ends, ...leaveAfterMs, headers: headersOf(tokens[role]) });
  }
}

function headersOf(token: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${token}` };
}
