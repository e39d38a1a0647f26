/** The manifest of a job whose pods run for an hour on a simulated cluster. */
export function longJob(
  name: string,
  { replicas, gpus }: { readonly replicas: number; readonly gpus: number },
): string {
  return `apiVersion: gangway.dev/v1
kind: Job
metadata: {name: ${name}}
spec:
  replicaSpecs:
    Worker:
      replicas: ${replicas}
      template:
        metadata: {annotations: {sim.gangway.dev/run: 1h}}
        spec:
          containers:
            - {name: main, image: registry.example.com/train:1, resources: {limits: {nvidia.com/gpu: ${gpus}}}}
`;
}
