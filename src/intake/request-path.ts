export type PathStep = string | number;

/**
 * Converts a path within a `SentJob` to the path of the field in a CreateJobRequest, such as
 * `job.spec.replica_specs[Worker].template.spec.containers[0].image`.
 */
export function requestPath(steps: readonly PathStep[]): string {
  const [first, ...rest] = steps;
  if (first === "spec") return `job.spec${specPath(rest)}`;
  if (first === "labels" || first === "annotations") return `job.metadata.${first}${keyed(rest)}`;
  return first === undefined ? "job" : `job.metadata${snakeSteps(steps)}`;
}

function specPath(steps: readonly PathStep[]): string {
  const [first, ...rest] = steps;
  switch (first) {
    case "replicaSpecs":
      return rest.length === 0 ? ".replica_specs" : `.replica_specs[${rest[0]}]${replicaPath(rest.slice(1))}`;
    case "kindSpec":
      return `.kind_spec${jsonSteps(rest)}`;
    case "inputs":
      return `.inputs${jsonSteps(rest)}`;
    case "placement":
      return rest[0] === "clusterSelector" ? `.placement.cluster_selector${keyed(rest.slice(1))}` : snakeSteps(steps);
    default:
      return snakeSteps(steps);
  }
}

/** Within a template, fields keep their Kubernetes names. */
function replicaPath(steps: readonly PathStep[]): string {
  return steps[0] === "template" ? `.template${jsonSteps(steps.slice(1))}` : snakeSteps(steps);
}

function keyed(steps: readonly PathStep[]): string {
  return steps.length === 0 ? "" : `[${steps[0]}]`;
}

function jsonSteps(steps: readonly PathStep[]): string {
  return steps.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`)).join("");
}

function snakeSteps(steps: readonly PathStep[]): string {
  const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return jsonSteps(steps.map((step) => (typeof step === "number" ? step : snake(step))));
}
