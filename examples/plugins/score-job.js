// @ts-check
/**
 * A kind without pods that uses everything that Gangway does for plugins. It reads the scores of a model, one number a
 * line, from `spec.inputs.scores`, and writes their mean to `spec.inputs.report`. Both are URLs of objects. What it makes
 * first is below the report and named after the task, so that a repeated call finds it again.
 */
import { phaseInfo, serviceKind } from "gangway/plugin";

const POOL = "ex:scores";
const LOOK_MS = 500;

const scoreJob = serviceKind({
  name: "ScoreJob",
  description: "Computes the mean of scores in an object store.",
  kindSpec: { lowest: { type: "number", description: "A mean below this fails the job." } },
  example: { lowest: 0.5 },
});

/** @param {import("gangway/plugin").SetupContext} setup */
async function load({ registerResourceQuota, secrets, metrics, enqueueOwner, ownerKind }) {
  await registerResourceQuota(POOL, 4);
  const signature = await secrets.get("score-signature");

  /**
   * @param {import("gangway/plugin").TaskContext} context
   * @returns {Promise<import("gangway/plugin").Transition>}
   */
  async function handle(context) {
    const { scores, report } = context.inputs;
    if (typeof scores !== "string" || typeof report !== "string") {
      return { info: phaseInfo.permanentFailure({ code: "NoPlaces", reason: "inputs need scores and report" }) };
    }
    if (context.state.value === null) return takeToken(context.resources);
    const read = await readScores(context, scores);
    if (read.mean === null) return read.instead;
    await writeReport(context, { report, mean: read.mean });
    metrics.count("reports", { label: context.job.namespace });
    metrics.time("handle", { tookMs: Math.max(0, Date.now() - context.nowMs) });
    return { info: infoOf(context, read.mean), outputs: { mean: read.mean, report } };
  }

  /**
   * @param {import("gangway/plugin").TaskContext} context
   * @param {{ report: string, mean: number }} of
   */
  async function writeReport(context, { report, mean }) {
    await context.store.write(`${report}.${context.taskName}`, "in progress");
    await context.store.write(report, JSON.stringify({ mean, signature, by: userOf(context) }));
  }

  return {
    id: "score",
    properties: { generatedNameLengthMin: 20, generatedNameLengthMax: 50 },
    handle,
    abort: removeTemporary,
    /** @param {import("gangway/plugin").TaskContext} context */
    finalize: async (context) => {
      await removeTemporary(context);
      await context.resources.release({ pool: POOL });
      // The owner is the job. Nothing is left to do for it; the next look sees that.
      if (ownerKind === "gangway.dev/Job") enqueueOwner(context.job.uid);
    },
  };
}

/**
 * @param {import("gangway/plugin").ResourceManager} resources
 * @returns {Promise<import("gangway/plugin").Transition>}
 */
async function takeToken(resources) {
  const asked = await resources.allocate({ pool: POOL });
  if (asked.status !== "GRANTED") {
    return { info: phaseInfo.waitingForResources({ reason: asked.message }), recheckAfterMs: LOOK_MS };
  }
  return { info: phaseInfo.queued(), state: { version: 1, value: { step: "read" } }, recheckAfterMs: 0 };
}

/**
 * @param {import("gangway/plugin").TaskContext} context
 * @param {string} reason
 * @returns {import("gangway/plugin").Transition}
 */
function retryLater({ attempt, maxAttempts, interruptible, events }, reason) {
  const most = maxAttempts.user ?? "any number";
  const where = interruptible ? "interruptible" : "not interruptible";
  events.record({
    reason: "ScoresMissing",
    message: `${reason}: attempt ${attempt} of ${most}, ${where}`,
    isWarning: true,
  });
  return { info: phaseInfo.retryableFailure({ code: "ScoresMissing", reason }) };
}

/**
 * The mean of the scores, or what `handle` answers instead.
 * @param {import("gangway/plugin").TaskContext} context
 * @param {string} scores
 * @returns {Promise<{ mean: number } | { mean: null, instead: import("gangway/plugin").Transition }>}
 */
async function readScores(context, scores) {
  const found = await context.store.head(scores);
  if (found === null) return { mean: null, instead: retryLater(context, `${scores} does not exist`) };
  const bytes = found.bytes > context.bytesMax ? null : await context.store.read(scores);
  if (bytes !== null) return { mean: meanOf(new TextDecoder().decode(bytes)) };
  const reason = `${scores} has ${found.bytes} bytes`;
  return { mean: null, instead: { info: phaseInfo.permanentFailure({ code: "TooLarge", reason }) } };
}

/**
 * @param {import("gangway/plugin").TaskContext} context
 * @param {number} mean
 */
function infoOf({ job }, mean) {
  const { lowest } = job.kindSpec;
  if (typeof lowest !== "number" || mean >= lowest) return phaseInfo.success({ reason: `the mean is ${mean}` });
  const reason = `the mean ${mean} is below ${lowest}`;
  return phaseInfo.permanentFailure({ code: "LowScore", reason, cleanup: true });
}

/** @param {import("gangway/plugin").TaskContext} context */
function userOf({ platform }) {
  const { serviceAccount, environment } = platform;
  return `${serviceAccount || "default"}@${environment.REGION ?? "anywhere"}`;
}

/** @param {import("gangway/plugin").TaskContext} context */
async function removeTemporary({ inputs, store, taskName }) {
  if (typeof inputs.report === "string") await store.delete(`${inputs.report}.${taskName}`);
}

/** @param {string} text */
function meanOf(text) {
  const numbers = text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map(Number);
  return numbers.length === 0 ? 0 : numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
}

/** @type {import("gangway/plugin").PluginEntry[]} */
export const plugins = [{ id: "score", kinds: [scoreJob], load }];
