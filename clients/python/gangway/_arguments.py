"""What both clients take and make, without a call."""

from __future__ import annotations

import os
import uuid
from typing import Any, Iterable, Mapping, Sequence, Union

from . import v1
from ._config import Config, Security, read_config
from ._documents import documents_of
from ._flow import Env, Flow
from ._flows import JobRef, call, place_of
from ._manifest import KindForm, kind_forms, request_of
from ._tokens import LEASE_S_MIN
from .errors import ManifestError

Manifest = Union[v1.Job, str, "os.PathLike[str]", Mapping[str, Any]]
"""A job, the text of a manifest (YAML or JSON), the path of its file, or its object."""

SERVICES = {
    "jobs": "JobService",
    "queues": "QueueService",
    "priority_classes": "PriorityClassService",
    "namespaces": "NamespaceService",
    "clusters": "ClusterService",
    "access": "AccessService",
    "resources": "ResourceManager",
}


def config_of(
    address: str | None,
    *,
    context: str | None,
    config_file: str | os.PathLike[str] | None,
    namespace: str | None,
    token: str | None,
    tls: bool,
    ca_file: str,
    client_cert_file: str,
    client_key_file: str,
    tls_server_name: str,
    token_file: str,
) -> Config:
    security = Security(tls, ca_file, client_cert_file, client_key_file, tls_server_name, token_file)
    return read_config(
        address,
        context=context,
        config_file=config_file,
        namespace=namespace,
        token=token,
        security=security,
        env=os.environ,
    )


class Manifests:
    """Reads manifests. Asks the service once which kinds it serves."""

    def __init__(self, env: Env, namespace: str) -> None:
        self._env = env
        self._namespace = namespace
        self._kinds: list[KindForm] | None = None

    def requests(self, sources: Iterable[Manifest], namespace: str | None) -> Flow[list[v1.CreateJobRequest]]:
        """The requests for all sources. Raises ManifestError with everything that is wrong, before anything is sent."""
        requests: list[v1.CreateJobRequest] = []
        problems: list[str] = []
        for source in sources:
            if isinstance(source, v1.Job):
                requests.append(v1.CreateJobRequest(job=self._job(source, namespace)))
                continue
            documents = documents_of(source)
            if not documents:
                problems.append("there is no manifest in the text")
            for at, document in enumerate(documents):
                kinds = yield from self._served()
                where = f"document {at + 1}: " if len(documents) > 1 else ""
                try:
                    requests.append(
                        request_of(
                            document, kinds, namespace=namespace or self._namespace, is_explicit=namespace is not None
                        )
                    )
                except ManifestError as error:
                    problems += [where + problem for problem in error.problems]
        if problems:
            raise ManifestError(problems)
        return requests

    def request(self, source: Manifest, namespace: str | None) -> Flow[v1.CreateJobRequest]:
        """The request for the only job of a source."""
        requests = yield from self.requests([source], namespace)
        if len(requests) != 1:
            raise ManifestError([f"there are {len(requests)} jobs in the manifest; submit_all takes several"])
        return requests[0]

    def _job(self, given: v1.Job, namespace: str | None) -> v1.Job:
        job = v1.Job()
        job.CopyFrom(given)
        own = job.metadata.namespace
        if own and namespace is not None and own != namespace:
            raise ManifestError([f"metadata.namespace: is {own}, but the call names {namespace}"])
        job.metadata.namespace = own or namespace or self._namespace
        return job

    def _served(self) -> Flow[list[KindForm]]:
        if self._kinds is None:
            answer = yield from call(self._env, "JobService/ListKinds", v1.ListKindsRequest())
            self._kinds = kind_forms(answer.kinds)
        return self._kinds


def simulation_of(asked: v1.CreateJobRequest) -> v1.SimulateJobRequest:
    request = v1.SimulateJobRequest(job=asked.job)
    if asked.HasField("manifest"):
        request.manifest.CopyFrom(asked.manifest)
    return request


def filter_of(
    namespace: str, names: Iterable[str], phases: Iterable[str], labels: Mapping[str, str] | None, queue: str
) -> v1.JobFilter:
    """``phases``: words such as ``running``. An empty namespace: all of them."""
    numbers = []
    for word in phases:
        name = f"JOB_PHASE_{word.upper()}"
        if name not in v1.JobPhase.keys():
            known = ", ".join(key.removeprefix("JOB_PHASE_").lower() for key in v1.JobPhase.keys()[1:])
            raise ValueError(f"there is no phase {word!r}; there are {known}")
        numbers.append(v1.JobPhase.Value(name))
    return v1.JobFilter(namespace=namespace, names=names, phases=numbers, labels=labels or {}, queue=queue)


def log_request(
    job: JobRef, namespace: str, *, follow: bool, replica: str, container: str, tail: int | None, previous: bool
) -> v1.StreamJobLogsRequest:
    where, name = place_of(job, namespace)
    request = v1.StreamJobLogsRequest(
        namespace=where, name=name, replica=replica, container=container, follow=follow, previous=previous
    )
    if tail is not None:
        request.tail_lines = tail
    return request


def suspend_request(job: JobRef, namespace: str, suspend: bool) -> v1.UpdateJobRequest:
    where, name = place_of(job, namespace)
    request = v1.UpdateJobRequest(update_mask=v1.FieldMask(paths=["spec.run_policy.suspend"]))
    request.job.metadata.namespace, request.job.metadata.name = where, name
    request.job.spec.run_policy.suspend = suspend
    return request


def token_request(
    pool: str,
    *,
    amount: int,
    lease: float | None,
    token: str | None,
    project: str,
    namespace: str,
    queue: str,
    holder: str,
    priority: int,
) -> v1.WaitForResourceRequest:
    """A token gets a name of its own if the caller gives none, so that repeated calls are one request."""
    request = v1.WaitForResourceRequest(
        resource_namespace=pool,
        allocation_token=token or uuid.uuid4().hex,
        amount=amount,
        project=project,
        namespace=namespace,
        queue=queue,
        holder=holder,
        priority=priority,
    )
    if lease is not None:
        if lease < LEASE_S_MIN:
            raise ValueError(f"lease must be at least {LEASE_S_MIN:g} seconds, not {lease:g}")
        request.lease.FromMilliseconds(round(lease * 1000))
    return request
