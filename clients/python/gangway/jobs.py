"""Makes jobs without a manifest."""

from __future__ import annotations

from typing import Any, Mapping, Sequence, Union

from . import v1

Quantity = Union[str, int]
"""An amount as Kubernetes writes it: ``64Gi``, ``500m``, 4."""


def torchrun(
    name: str,
    image: str,
    args: Sequence[str],
    *,
    nodes: int = 1,
    gpus_per_node: int = 0,
    nproc_per_node: int | str | None = None,
    queue: str = "",
    namespace: str = "",
    priority: int | None = None,
    priority_class: str = "",
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    resources: Mapping[str, Quantity] | None = None,
    gpu_resource: str = "nvidia.com/gpu",
    gpu_models: Sequence[str] = (),
    clusters: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    min_nodes: int | None = None,
    max_runtime: float | None = None,
    max_failures: int | None = None,
    restart_policy: str = "OnFailure",
    pod: Mapping[str, Any] | None = None,
    container: Mapping[str, Any] | None = None,
    pod_annotations: Mapping[str, str] | None = None,
) -> v1.Job:
    """A PyTorchJob whose pods run ``torchrun ARGS``, one pod a node. Submit it with ``Client.submit``.

    The pods find each other by themselves: the service sets MASTER_ADDR and the PET_ variables that torchrun reads.

    name: a DNS label of at most 63 characters that begins with a letter.
    args: the script and its arguments, such as ``["train.py", "--epochs", "3"]``; options of torchrun come first.
    nodes: pods, all admitted together. One of them is the master, with whose success the job succeeds.
    gpus_per_node: GPUs of each pod. nproc_per_node: processes of each pod. Omitted: one for each GPU, else 1.
    queue: whose quota is used. Empty: the namespace's default queue.
    cpu, memory, resources: limits of each pod beside its GPUs.
    gpu_models: models that the job may use, such as ``["h100"]``. Empty: any. clusters: likewise.
    min_nodes: at least so many pods are admitted together. Omitted: all of them.
    max_runtime: seconds after its admission at which the job is ended. max_failures: failures of the program at which
    the job fails. Omitted: no limit.
    restart_policy: ``Always``, ``OnFailure``, ``Never`` or ``ExitCode``.
    pod: members of the pod's spec, such as ``{"serviceAccountName": "trainer"}``. container: those of its container,
    such as ``{"volumeMounts": [...]}``.
    Raises ValueError for numbers that make no job.
    """
    if nodes < 1:
        raise ValueError(f"nodes must be at least 1, not {nodes}")
    if gpus_per_node < 0:
        raise ValueError(f"gpus_per_node must be at least 0, not {gpus_per_node}")
    if min_nodes is not None and not 1 <= min_nodes <= nodes:
        raise ValueError(f"min_nodes must be from 1 to nodes ({nodes}), not {min_nodes}")
    limits: dict[str, str] = {key: str(value) for key, value in (resources or {}).items()}
    for key, value in (("cpu", cpu), ("memory", memory), (gpu_resource, gpus_per_node or None)):
        if value is not None:
            limits[key] = str(value)
    main: dict[str, Any] = {"name": "pytorch", "image": image, "command": ["torchrun"], "args": list(args)}
    if limits:
        main["resources"] = {"limits": limits}
    if env:
        main["env"] = [{"name": key, "value": value} for key, value in env.items()]
    template: dict[str, Any] = {"spec": {**(pod or {}), "containers": [{**main, **(container or {})}]}}
    if pod_annotations:
        template["metadata"] = {"annotations": dict(pod_annotations)}
    processes = nproc_per_node if nproc_per_node is not None else max(1, gpus_per_node)
    job = v1.Job(
        metadata=v1.Metadata(name=name, namespace=namespace, labels=labels or {}, annotations=annotations or {}),
        spec=v1.JobSpec(kind="PyTorchJob", priority=priority, priority_class_name=priority_class),
    )
    for role, replicas in (("Master", 1), ("Worker", nodes - 1)):
        if replicas:
            replica = job.spec.replica_specs[role]
            replica.replicas = replicas
            replica.restart_policy = _restart_policy(restart_policy)
            replica.template.update(template)
    job.spec.kind_spec.update({"nprocPerNode": str(processes)})
    policy = job.spec.run_policy
    if queue:
        policy.scheduling_policy.queue = queue
    if min_nodes is not None:
        policy.scheduling_policy.min_available = min_nodes
    if max_failures is not None:
        policy.backoff_limit = max_failures
    if max_runtime is not None:
        policy.max_runtime.FromMilliseconds(round(max_runtime * 1000))
    job.spec.placement.gpu_models.extend(gpu_models)
    job.spec.placement.clusters.extend(clusters)
    return job


_POLICIES = {
    "Always": v1.RESTART_POLICY_ALWAYS,
    "OnFailure": v1.RESTART_POLICY_ON_FAILURE,
    "Never": v1.RESTART_POLICY_NEVER,
    "ExitCode": v1.RESTART_POLICY_EXIT_CODE,
}


def _restart_policy(word: str) -> v1.RestartPolicy:
    if word not in _POLICIES:
        raise ValueError(f"restart_policy must be one of {', '.join(_POLICIES)}, not {word!r}")
    return _POLICIES[word]
