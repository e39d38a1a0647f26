import { AccessService } from "../gen/gangway/v1/access_service_pb.ts";
import { ClusterService } from "../gen/gangway/v1/cluster_service_pb.ts";
import { JobService } from "../gen/gangway/v1/job_service_pb.ts";
import { NamespaceService } from "../gen/gangway/v1/namespace_service_pb.ts";
import { PriorityClassService } from "../gen/gangway/v1/priority_class_service_pb.ts";
import { QueueService } from "../gen/gangway/v1/queue_service_pb.ts";
import { ResourceManager } from "../gen/gangway/v1/resource_manager_pb.ts";
import { RuntimeService } from "../gen/gangway/v1/runtime_service_pb.ts";

/** The services of Gangway, beside the standard ones for health and reflection. */
export const SERVICES = [
  AccessService,
  JobService,
  QueueService,
  ResourceManager,
  ClusterService,
  NamespaceService,
  PriorityClassService,
  RuntimeService,
] as const;
