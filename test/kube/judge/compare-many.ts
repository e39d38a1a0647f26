import type { JsonObject } from "../../../src/runtime/json.ts";
import { pick, seededRandom } from "../../support/random.ts";
import type { ControlPlane } from "../control-plane.ts";
import { compare, type Difference, judgedPod, makeNamespace } from "./compare.ts";
import { mutated } from "./mutate.ts";
import { JUDGED_KINDS } from "./random-jobs.ts";
import { TEMPLATES } from "./templates.ts";

/** Requests at a time. */
const AT_ONCE = 8;

type Comparison = {
  readonly compared: number;
  /** How many pods both refuse. */
  readonly refused: number;
  readonly differences: readonly Difference[];
};

/** Compares how the two judge random changes of our templates and of these. The same seed gives the same pods. */
export async function compareMany(
  plane: ControlPlane,
  wanted: { readonly count: number; readonly seed: number; readonly templates?: readonly JsonObject[] },
): Promise<Comparison> {
  await makeNamespace(plane);
  const random = seededRandom(wanted.seed);
  const templates = [...Object.values(TEMPLATES), ...(wanted.templates ?? [])];
  const differences: Difference[] = [];
  let compared = 0;
  let refused = 0;
  const worker = async () => {
    while (compared < wanted.count) {
      const number = compared++;
      // The first pods are those of the templates as they are.
      const whole = templates[number];
      const { template, what } =
        whole === undefined ? mutated(pick(random, templates), random) : { template: whole, what: "unchanged" };
      const judged = judgedPod(template, pick(random, JUDGED_KINDS));
      const difference = await compare(plane, judged, `pod ${number}, ${what}`);
      if (difference !== null) differences.push(difference);
      else if (judged.errors.length > 0) refused++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { compared, refused, differences };
}
