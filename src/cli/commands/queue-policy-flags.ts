/**
 * The flags of `gangway queue create` and `update` that say how a queue shares and preempts, and whether its gangs wait
 * for lost clusters.
 */
import { create } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { type Command, InvalidArgumentError, Option } from "commander";
import {
  BorrowWithinPolicy,
  BorrowWithinSchema,
  FairSharingSchema,
  FairSharingStrategy,
  FlavorFungibilitySchema,
  FlavorPreference,
  FlavorSearch,
  MinRuntimeSchema,
  PriorityAgeingSchema,
  QueuePreemptionSchema,
  ReclaimWithinTree,
  WithinQueuePreemption,
} from "../../gen/gangway/v1/queue_policy_pb.ts";
import type { Queue } from "../../gen/gangway/v1/queue_service_pb.ts";
import { formatSetSpan } from "../output/duration.ts";
import { usageFailure } from "../shell/exit.ts";
import { durationOption, parseInt32, parseInt32Or, splitCommas } from "../shell/options.ts";
import { ON_CLUSTER_LOST, type OnClusterLostWord, onClusterLostOption } from "./on-cluster-lost.ts";

const STRATEGIES = {
  "final-share": FairSharingStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,
  "initial-share": FairSharingStrategy.LESS_THAN_INITIAL_SHARE,
} as const;
const WITHIN_QUEUE = {
  never: WithinQueuePreemption.NEVER,
  "lower-priority": WithinQueuePreemption.LOWER_PRIORITY,
  "lower-or-newer-equal-priority": WithinQueuePreemption.LOWER_OR_NEWER_EQUAL_PRIORITY,
} as const;
const RECLAIM = {
  never: ReclaimWithinTree.NEVER,
  "lower-priority": ReclaimWithinTree.LOWER_PRIORITY,
  any: ReclaimWithinTree.ANY,
} as const;
const BORROW = {
  never: BorrowWithinPolicy.NEVER,
  "lower-priority": BorrowWithinPolicy.LOWER_PRIORITY,
} as const;
const SEARCH = {
  stop: FlavorSearch.MAY_STOP_SEARCH,
  "try-next": FlavorSearch.TRY_NEXT_FLAVOR,
} as const;
const PREFERENCE = {
  none: FlavorPreference.UNSPECIFIED,
  "preemption-over-borrowing": FlavorPreference.PREEMPTION_OVER_BORROWING,
  "borrowing-over-preemption": FlavorPreference.BORROWING_OVER_PREEMPTION,
} as const;

/** In place of a duration: the minimum is that of the queue above. */
const INHERIT_MS = -1;
/** In place of a duration: priorities do not grow. */
const NO_AGEING_MS = -1;

const RESERVE_AFTER_MS = 600_000;

type Strategies = readonly FairSharingStrategy[] | "off";

export type PolicyOptions = {
  readonly weight?: number;
  readonly fairSharing?: Strategies;
  readonly preemptWithinQueue?: keyof typeof WITHIN_QUEUE;
  readonly reclaimWithinTree?: keyof typeof RECLAIM;
  readonly borrowWithin?: keyof typeof BORROW;
  readonly borrowWithinMaxPriority?: number | "none";
  readonly whenCanBorrow?: keyof typeof SEARCH;
  readonly whenCanPreempt?: keyof typeof SEARCH;
  readonly flavorPreference?: keyof typeof PREFERENCE;
  readonly minRuntimePreempt?: number;
  readonly minRuntimeReclaim?: number;
  readonly maxPreemptions?: number | "inherit";
  readonly preemptionsPerHour?: number | "any";
  readonly ageing?: number;
  readonly ageingStep?: number;
  readonly ageingLimit?: number;
  readonly reserveAfter?: number;
  readonly onClusterLost?: OnClusterLostWord;
};

/** Adds the flags to a command. */
export function addPolicyFlags(command: Command): Command {
  return addAgeingFlags(command)
    .addOption(
      new Option(
        "--weight <number>",
        "the queue's weight among its siblings when they compete for lent quota; needs fair sharing on the root of " +
          "the tree; 0: it gets only what no sibling wants (default: 1)",
      ).argParser(parseWeight),
    )
    .addOption(
      new Option(
        "--fair-sharing <on|off|rules>",
        "only for a queue without a parent: in its whole tree, the branch with the lower share goes first; rules by " +
          "which a job may preempt a job of another branch: final-share, initial-share, or both with a comma " +
          "(default: off)",
      ).argParser(parseStrategies),
    )
    .addOption(
      choice("--preempt-within-queue <whom>", "jobs of the same queue that may be preempted", WITHIN_QUEUE, "never"),
    )
    .addOption(
      choice(
        "--reclaim-within-tree <whom>",
        "jobs of other queues, which borrow, that may be preempted when the queue takes back its quota",
        RECLAIM,
        "never",
      ),
    )
    .addOption(
      choice(
        "--borrow-within <whom>",
        "jobs of other queues, which borrow, that may be preempted when the queue borrows too",
        BORROW,
        "never",
      ),
    )
    .addOption(
      new Option(
        "--borrow-within-max-priority <priority>",
        "with --borrow-within: only jobs up to this priority; none: of any lower priority (default: none)",
      ).argParser((text) => parseInt32Or(["none"], text)),
    )
    .addOption(choice("--when-can-borrow <then>", "after a flavor that fits only by borrowing", SEARCH, "stop"))
    .addOption(choice("--when-can-preempt <then>", "after a flavor that fits only by preempting", SEARCH, "try-next"))
    .addOption(
      choice(
        "--flavor-preference <which>",
        "which of several such flavors is chosen, if both options above are try-next",
        PREFERENCE,
        "none",
      ),
    )
    .addOption(
      minRuntimeOption("--min-runtime-preempt <duration>", "how long a job runs before its own queue may preempt it"),
    )
    .addOption(
      minRuntimeOption("--min-runtime-reclaim <duration>", "how long a job runs before other queues may preempt it"),
    )
    .addOption(
      durationOption(
        "--reserve-after <duration>",
        "after a job has waited this long for nodes or quota, capacity that is freed is reserved for it, e.g. 90s, " +
          "10m or 1h30m; never or 0s: no reservations (default: 10m)",
        { never: 0 },
      ),
    )
    .addOption(
      onClusterLostOption(
        ["wait", "move", "inherit"],
        "; inherit: as the queue above says, else the namespace of the job (default: inherit)",
      ),
    );
}

function addAgeingFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--max-preemptions <count>",
        "protects a job after it has been preempted this many times; inherit: as the queue above says " +
          "(default: inherit)",
      ).argParser((text) => parseInt32Or(["inherit"], text, 0)),
    )
    .addOption(
      new Option(
        "--preemptions-per-hour <count>",
        "the most jobs that may be preempted for jobs of the queue within an hour; any: no limit (default: any)",
      ).argParser((text) => parseInt32Or(["any"], text, 0)),
    )
    .addOption(
      durationOption(
        "--ageing <duration>",
        "raises the priority of a waiting job in the order of admission by --ageing-step for each interval of this " +
          "length that it has waited; off: priorities stay as they are (default: off)",
        { off: NO_AGEING_MS },
      ),
    )
    .addOption(
      new Option(
        "--ageing-step <number>",
        "with --ageing: how much the priority rises each time (default: 1)",
      ).argParser(parseInt32),
    )
    .addOption(
      new Option("--ageing-limit <number>", "with --ageing: the most by which the priority rises; required").argParser(
        parseInt32,
      ),
    );
}

function choice(flags: string, help: string, words: Readonly<Record<string, number>>, usual: string): Option {
  return new Option(flags, `${help} (default: ${usual})`).choices(Object.keys(words));
}

function minRuntimeOption(flags: string, help: string): Option {
  const values = "e.g. 90s, 10m or 1h30m; 0s: no protection; inherit: as the queue above says";
  return durationOption(flags, `${help}, ${values} (default: inherit)`, { inherit: INHERIT_MS });
}

function parseWeight(text: string): number {
  const weight = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (weight === 0 || (weight >= 0.000001 && weight <= 1_000_000)) return weight;
  throw new InvalidArgumentError("It must be 0, or a number from 0.000001 to 1000000.");
}

function parseStrategies(text: string): Strategies {
  if (text === "off") return "off";
  if (text === "on") return [];
  const names = splitCommas(text);
  if (names.length > 0 && names.every((name) => Object.hasOwn(STRATEGIES, name))) {
    return names.map((name) => STRATEGIES[name as keyof typeof STRATEGIES]);
  }
  throw new InvalidArgumentError(`It must be on, off, or a list of ${Object.keys(STRATEGIES).join(" and ")}.`);
}

/** Changes a queue as the flags ask for. Flags that are omitted change nothing. */
export function changePolicy(queue: Queue, options: PolicyOptions): void {
  if (options.weight !== undefined) queue.weight = options.weight;
  if (options.fairSharing === "off") delete queue.fairSharing;
  else if (options.fairSharing !== undefined) {
    queue.fairSharing = create(FairSharingSchema, { strategies: [...options.fairSharing] });
  }
  changePreemption(queue, options);
  changeFungibility(queue, options);
  changeMinRuntime(queue, options);
  changeAgeing(queue, options);
  const { maxPreemptions, preemptionsPerHour } = options;
  if (preemptionsPerHour === "any") delete queue.preemptionsPerHour;
  else if (preemptionsPerHour !== undefined) queue.preemptionsPerHour = preemptionsPerHour;
  if (maxPreemptions === "inherit") delete queue.maxPreemptions;
  else if (maxPreemptions !== undefined) queue.maxPreemptions = maxPreemptions;
  if (options.reserveAfter !== undefined) queue.reserveAfter = durationFromMs(options.reserveAfter);
  if (options.onClusterLost !== undefined) queue.onClusterLost = ON_CLUSTER_LOST[options.onClusterLost];
}

function changeFungibility(queue: Queue, options: PolicyOptions): void {
  const { whenCanBorrow, whenCanPreempt, flavorPreference } = options;
  const fungibility = queue.flavorFungibility ?? create(FlavorFungibilitySchema);
  if (whenCanBorrow !== undefined) fungibility.whenCanBorrow = SEARCH[whenCanBorrow];
  if (whenCanPreempt !== undefined) fungibility.whenCanPreempt = SEARCH[whenCanPreempt];
  if (flavorPreference !== undefined) fungibility.preference = PREFERENCE[flavorPreference];
  queue.flavorFungibility = fungibility;
}

function changeMinRuntime(queue: Queue, { minRuntimePreempt, minRuntimeReclaim }: PolicyOptions): void {
  const minRuntime = queue.minRuntime ?? create(MinRuntimeSchema);
  for (const [name, ms] of [
    ["preempt", minRuntimePreempt],
    ["reclaim", minRuntimeReclaim],
  ] as const) {
    if (ms === INHERIT_MS) delete minRuntime[name];
    else if (ms !== undefined) minRuntime[name] = durationFromMs(ms);
  }
  queue.minRuntime = minRuntime;
}

/** Only `--ageing` turns it on: without an interval, the service refuses a step or a limit. */
function changeAgeing(queue: Queue, { ageing: intervalMs, ageingStep, ageingLimit }: PolicyOptions): void {
  if (intervalMs === NO_AGEING_MS) {
    if ((ageingStep ?? ageingLimit) !== undefined) {
      throw usageFailure("--ageing off cannot have --ageing-step or --ageing-limit");
    }
    delete queue.ageing;
  }
  if (intervalMs === NO_AGEING_MS || (intervalMs ?? ageingStep ?? ageingLimit) === undefined) return;
  const ageing = queue.ageing ?? create(PriorityAgeingSchema);
  if (intervalMs !== undefined) ageing.interval = durationFromMs(intervalMs);
  if (ageingStep !== undefined) ageing.step = ageingStep;
  if (ageingLimit !== undefined) ageing.limit = ageingLimit;
  queue.ageing = ageing;
}

function changePreemption(queue: Queue, options: PolicyOptions): void {
  const { preemptWithinQueue, reclaimWithinTree, borrowWithin, borrowWithinMaxPriority } = options;
  const preemption = queue.preemption ?? create(QueuePreemptionSchema);
  if (preemptWithinQueue !== undefined) preemption.withinQueue = WITHIN_QUEUE[preemptWithinQueue];
  if (reclaimWithinTree !== undefined) preemption.reclaimWithinTree = RECLAIM[reclaimWithinTree];
  const borrowing = preemption.borrowWithin ?? create(BorrowWithinSchema);
  if (borrowWithin !== undefined) borrowing.policy = BORROW[borrowWithin];
  // Without such preemption, a bound of it means nothing.
  if (borrowWithin === "never" || borrowWithinMaxPriority === "none") delete borrowing.maxPriority;
  if (typeof borrowWithinMaxPriority === "number") borrowing.maxPriority = borrowWithinMaxPriority;
  preemption.borrowWithin = borrowing;
  queue.preemption = preemption;
}

/** The settings that are not the default, as their flags: `--reclaim-within-tree any, --min-runtime-preempt 10m`. */
export function policyText(queue: Queue): string {
  const { fairSharing, preemption, flavorFungibility, minRuntime, ageing, reserveAfter } = queue;
  const borrowing = preemption?.borrowWithin;
  const flags: readonly (readonly [flag: string, value: string])[] = [
    ["fair-sharing", (fairSharing?.strategies ?? []).map((strategy) => wordOf(STRATEGIES, strategy)).join(",")],
    ["preempt-within-queue", changed(WITHIN_QUEUE, preemption?.withinQueue, "never")],
    ["reclaim-within-tree", changed(RECLAIM, preemption?.reclaimWithinTree, "never")],
    ["borrow-within", changed(BORROW, borrowing?.policy, "never")],
    ["borrow-within-max-priority", borrowing?.maxPriority === undefined ? "" : String(borrowing.maxPriority)],
    ["when-can-borrow", changed(SEARCH, flavorFungibility?.whenCanBorrow, "stop")],
    ["when-can-preempt", changed(SEARCH, flavorFungibility?.whenCanPreempt, "try-next")],
    ["flavor-preference", changed(PREFERENCE, flavorFungibility?.preference, "none")],
    ["min-runtime-preempt", minRuntime?.preempt === undefined ? "" : formatSetSpan(durationMs(minRuntime.preempt))],
    ["min-runtime-reclaim", minRuntime?.reclaim === undefined ? "" : formatSetSpan(durationMs(minRuntime.reclaim))],
    ["max-preemptions", queue.maxPreemptions === undefined ? "" : String(queue.maxPreemptions)],
    ["preemptions-per-hour", queue.preemptionsPerHour === undefined ? "" : String(queue.preemptionsPerHour)],
    ["ageing", ageing?.interval === undefined ? "" : formatSetSpan(durationMs(ageing.interval))],
    ["ageing-step", (ageing?.step ?? 1) === 1 ? "" : String(ageing?.step)],
    ["ageing-limit", ageing === undefined ? "" : String(ageing.limit)],
    ["reserve-after", reserveAfter === undefined ? "" : reserveAfterText(durationMs(reserveAfter))],
    ["on-cluster-lost", changed(ON_CLUSTER_LOST, queue.onClusterLost, "inherit")],
  ];
  return flags
    .filter(([, value]) => value !== "")
    .map(([flag, value]) => `--${flag} ${value}`)
    .join(", ");
}

/** Empty for the default. */
function reserveAfterText(ms: number): string {
  if (ms === RESERVE_AFTER_MS) return "";
  return ms === 0 ? "never" : formatSetSpan(ms);
}

function wordOf(words: Readonly<Record<string, number>>, value: number | undefined): string {
  return Object.keys(words).find((word) => words[word] === value) ?? "";
}

/** The word of a value. Empty for the default. */
function changed(words: Readonly<Record<string, number>>, value: number | undefined, usual: string): string {
  const word = wordOf(words, value);
  return word === usual ? "" : word;
}
