import type { JsonObject, Message, MessageInitShape } from "@bufbuild/protobuf";
import type { JobSchema } from "../../src/gen/gangway/v1/job_pb.ts";
import type { CreateJobRequestSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";

export type JobInit = Exclude<MessageInitShape<typeof JobSchema>, Message>;
export type CreateInit = MessageInitShape<typeof CreateJobRequestSchema>;

export function template(container = "pytorch"): JsonObject {
  return { spec: { containers: [{ name: container, image: "example.com/train:1", command: ["train"] }] } };
}

/** A valid PyTorchJob of one master and two workers. */
export function pytorchJob(name = "mnist", spec: Partial<NonNullable<JobInit["spec"]>> = {}): JobInit {
  return {
    metadata: { name },
    spec: {
      kind: "PyTorchJob",
      replicaSpecs: { Master: { replicas: 1, template: template() }, Worker: { replicas: 2, template: template() } },
      ...spec,
    } as NonNullable<JobInit["spec"]>,
  };
}
