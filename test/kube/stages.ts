/**
 * KWOK stages for the pods of our jobs. Each pod runs for a moment and succeeds, except the first attempt of a pod
 * whose annotation says that it fails.
 */

/** The first attempt of a pod with this annotation ends with exit code 137, as of a killed program. */
export const FAILS_FIRST = "test.gangway.dev/fails-first";

/** Pods with this annotation that do not fail run until they are deleted. */
export const RUNS = "test.gangway.dev/runs";

const ATTEMPT = '.metadata.labels["gangway.dev/attempt"]';

export const TRAINING_STAGES = [
  stage("trained", { phase: "Succeeded", exitCode: 0, reason: "Completed" }, [
    expression(`.metadata.annotations["${FAILS_FIRST}"]`, "DoesNotExist"),
    expression(`.metadata.annotations["${RUNS}"]`, "DoesNotExist"),
  ]),
  stage("trained-at-last", { phase: "Succeeded", exitCode: 0, reason: "Completed" }, [
    expression(`.metadata.annotations["${FAILS_FIRST}"]`, "Exists"),
    expression(`.metadata.annotations["${RUNS}"]`, "DoesNotExist"),
    expression(ATTEMPT, "NotIn", ["1"]),
  ]),
  stage("failed", { phase: "Failed", exitCode: 137, reason: "Error" }, [
    expression(`.metadata.annotations["${FAILS_FIRST}"]`, "Exists"),
    expression(ATTEMPT, "In", ["1"]),
  ]),
].join("\n---\n");

type End = { readonly phase: string; readonly exitCode: number; readonly reason: string };

function expression(key: string, operator: string, values: readonly string[] = []) {
  return values.length === 0 ? { key, operator } : { key, operator, values };
}

/** Ends a running pod of ours this way after half a second to two seconds. */
function stage(name: string, end: End, of: readonly object[]): string {
  return JSON.stringify({
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "Stage",
    metadata: { name },
    spec: {
      resourceRef: { apiGroup: "v1", kind: "Pod" },
      selector: {
        matchExpressions: [
          expression(".metadata.deletionTimestamp", "DoesNotExist"),
          expression(".status.phase", "In", ["Running"]),
          expression(ATTEMPT, "Exists"),
          ...of,
        ],
      },
      delay: { durationMilliseconds: 500, jitterDurationMilliseconds: 2_000 },
      next: { statusTemplate: statusTemplate(end) },
    },
  });
}

function statusTemplate({ phase, exitCode, reason }: End): string {
  return `
{{ $now := Now }}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: ${exitCode}
      reason: ${reason}
      startedAt: {{ $now | Quote }}
      finishedAt: {{ $now | Quote }}
{{ end }}
phase: ${phase}
`;
}
