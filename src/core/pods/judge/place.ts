/** One step into a pod: a member, an item of a list, or an entry of a map. */
type Step = string | number | { readonly key: string };

/** Where a value is in a pod. Its text is made only for findings. Null: the pod itself. */
export type PodPlace = { readonly up: PodPlace; readonly step: Step } | null;

export function inside(up: PodPlace, step: Step): PodPlace {
  return { up, step };
}

const STEP_SHOWN_MAX = 80;
const PLAIN_KEY = /^[A-Za-z][A-Za-z0-9-]*$/;

/** `spec.containers[0].resources.limits["nvidia.com/gpu"]`, but `limits.cpu`. */
export function placeText(place: PodPlace): string {
  return joined(place, (key) => (PLAIN_KEY.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`));
}

/** The same in the words of Kubernetes: `spec.containers[0].resources.limits[cpu]`. */
export function kubernetesField(place: PodPlace): string {
  return joined(place, (key) => `[${key}]`);
}

function joined(place: PodPlace, keyText: (key: string) => string): string {
  const texts: string[] = [];
  for (let at = place; at !== null; at = at.up) texts.push(stepText(at.step, keyText));
  return texts.reverse().join("").replace(/^\./, "");
}

function stepText(step: Step, keyText: (key: string) => string): string {
  if (typeof step === "number") return `[${step}]`;
  if (typeof step === "string") return `.${step.slice(0, STEP_SHOWN_MAX)}`;
  return keyText(step.key.slice(0, STEP_SHOWN_MAX));
}
