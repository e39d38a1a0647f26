"""The client with coroutines, for asyncio. Its methods and their errors are those of ``gangway.Client``."""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Iterable, List, Mapping, Sequence, TypeVar

import grpc
import grpc.aio

from . import v1
from ._arguments import (
    Manifest,
    Manifests,
    config_of,
    filter_of,
    log_request,
    simulation_of,
    suspend_request,
    token_request,
)
from ._flow import LOG, Call, Effect, Emit, Env, Flow, Next, Open, Pause
from ._flows import (
    JobEvent,
    JobRef,
    LogLine,
    call_rpc,
    create,
    create_all,
    delete,
    logs,
    pages,
    place_of,
    stream,
    wait,
    watch,
)
from ._lines import UNREACHED, Lines
from ._services import Rpc, bind
from ._tokens import Grant, acquire, keep, release
from .errors import CallError, TokenLost, error_of_rpc

if TYPE_CHECKING:
    from ._services import (
        AsyncAccessService,
        AsyncClusterService,
        AsyncJobService,
        AsyncNamespaceService,
        AsyncPriorityClassService,
        AsyncQueueService,
        AsyncResourceManager,
        AsyncRuntimeService,
    )

T = TypeVar("T")


class AsyncClient:
    """Calls a Gangway service by coroutines of one event loop. ``close`` it, or use it in ``async with``.

    Its arguments, methods and errors are those of ``gangway.Client``. ``list``, ``pods``, ``events``, ``watch`` and
    ``logs`` return asynchronous iterators, and ``token`` an asynchronous context manager.
    """

    jobs: AsyncJobService
    """All methods of JobService, with the messages of ``gangway.v1``. So are the others."""
    queues: AsyncQueueService
    priority_classes: AsyncPriorityClassService
    runtimes: AsyncRuntimeService
    namespaces: AsyncNamespaceService
    clusters: AsyncClusterService
    access: AsyncAccessService
    resources: AsyncResourceManager

    def __init__(
        self,
        address: str | None = None,
        *,
        context: str | None = None,
        config_file: str | os.PathLike[str] | None = None,
        namespace: str | None = None,
        token: str | None = None,
        token_file: str = "",
        tls: bool = False,
        ca_file: str = "",
        client_cert_file: str = "",
        client_key_file: str = "",
        tls_server_name: str = "",
    ) -> None:
        config = config_of(
            address,
            context=context,
            config_file=config_file,
            namespace=namespace,
            token=token,
            tls=tls,
            ca_file=ca_file,
            client_cert_file=client_cert_file,
            client_key_file=client_key_file,
            tls_server_name=tls_server_name,
            token_file=token_file,
        )
        self.addresses: tuple[str, ...] = config.addresses
        self.namespace: str = config.namespace
        self._env = Env()
        self._lines = Lines(config, grpc.aio.insecure_channel, grpc.aio.secure_channel)
        self._manifests = Manifests(self._env, self.namespace)
        self.jobs = bind("JobService", self._call)
        self.queues = bind("QueueService", self._call)
        self.priority_classes = bind("PriorityClassService", self._call)
        self.runtimes = bind("RuntimeService", self._call)
        self.namespaces = bind("NamespaceService", self._call)
        self.clusters = bind("ClusterService", self._call)
        self.access = bind("AccessService", self._call)
        self.resources = bind("ResourceManager", self._call)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends all calls and connections."""
        for channel in self._lines.close():
            await channel.close()

    async def submit(
        self,
        job: Manifest,
        *,
        request_id: str | None = None,
        namespace: str | None = None,
        validate_only: bool = False,
        strict: bool = False,
        timeout: float | None = None,
    ) -> v1.Job:
        """Creates a job, and returns it as the service has recorded it. Logs what is probably a mistake in it."""
        read = await self._run(self._manifests.request(job, namespace))
        flow = create(
            self._env, read, request_id=request_id, validate_only=validate_only, strict=strict, timeout=timeout
        )
        return (await self._run(flow)).job

    async def submit_all(
        self,
        jobs: Iterable[Manifest],
        *,
        request_ids: Sequence[str] | None = None,
        namespace: str | None = None,
        strict: bool = False,
        timeout: float | None = None,
    ) -> List[v1.Job | CallError]:
        """Creates many jobs by few calls. Returns the job or the error of each one, in their order."""
        read = await self._run(self._manifests.requests(jobs, namespace))
        return await self._run(create_all(self._env, read, request_ids=request_ids, strict=strict, timeout=timeout))

    async def simulate(self, job: Manifest, *, namespace: str | None = None) -> v1.SimulateJobResponse:
        """Says whether a job could run, now or later, and on which clusters. Creates nothing."""
        read = await self._run(self._manifests.request(job, namespace))
        return await self.jobs.SimulateJob(simulation_of(read))

    async def get(self, job: JobRef) -> v1.Job:
        """The job as it is now. Raises NotFound."""
        namespace, name = place_of(job, self.namespace)
        return (await self.jobs.GetJob(v1.GetJobRequest(namespace=namespace, name=name))).job

    def list(
        self,
        *,
        namespace: str | None = None,
        names: Iterable[str] = (),
        phases: Iterable[str] = (),
        labels: Mapping[str, str] | None = None,
        queue: str = "",
        order_by: str = "",
    ) -> AsyncIterator[v1.Job]:
        """All jobs that pass the filter, read page by page while you iterate."""
        where = self.namespace if namespace is None else namespace
        request = v1.ListJobsRequest(filter=filter_of(where, names, phases, labels, queue), order_by=order_by)
        return self._iterate(pages(self._env, "JobService/ListJobs", request, "jobs", None))

    def pods(self, job: JobRef) -> AsyncIterator[v1.JobPod]:
        """The pods of a job's admission, as their cluster reports them now."""
        namespace, name = place_of(job, self.namespace)
        request = v1.ListJobPodsRequest(namespace=namespace, name=name)
        return self._iterate(pages(self._env, "JobService/ListJobPods", request, "pods", None))

    def events(self, job: JobRef) -> AsyncIterator[v1.JobEvent]:
        """The events of all jobs that have had this name, oldest first."""
        namespace, name = place_of(job, self.namespace)
        request = v1.ListJobEventsRequest(namespace=namespace, name=name)
        return self._iterate(pages(self._env, "JobService/ListJobEvents", request, "events", None))

    async def explain(self, job: JobRef) -> v1.ExplainJobResponse:
        """Why a job waits, where it runs, or why it failed: ``summary`` in one sentence. Raises NotFound."""
        namespace, name = place_of(job, self.namespace)
        return await self.jobs.ExplainJob(v1.ExplainJobRequest(namespace=namespace, name=name))

    async def cancel(self, job: JobRef, *, reason: str = "") -> v1.Job:
        """Ends a job and keeps its record. Raises NotFound, or FailedPrecondition if it had already ended."""
        namespace, name = place_of(job, self.namespace)
        return (await self.jobs.CancelJob(v1.CancelJobRequest(namespace=namespace, name=name, reason=reason))).job

    async def delete(self, job: JobRef) -> None:
        """Ends a job, and removes its record once nothing of it is left in its clusters. Raises NotFound."""
        await self._run(delete(self._env, *place_of(job, self.namespace), None))

    async def suspend(self, job: JobRef) -> v1.Job:
        """Takes the pods of a job away, and keeps its record. Raises NotFound or FailedPrecondition."""
        return (await self.jobs.UpdateJob(suspend_request(job, self.namespace, True))).job

    async def resume(self, job: JobRef) -> v1.Job:
        """Lets a suspended job wait in its queue again. Raises NotFound or FailedPrecondition."""
        return (await self.jobs.UpdateJob(suspend_request(job, self.namespace, False))).job

    async def wait(self, job: JobRef, *, until: str = "ended", timeout: float | None = None) -> v1.Job:
        """Waits until a job has succeeded, and returns it. Outlives lost connections and restarts of the service."""
        return await self._run(wait(self._env, job, self.namespace, until=until, timeout=timeout))

    def watch(
        self,
        *,
        namespace: str | None = None,
        names: Iterable[str] = (),
        phases: Iterable[str] = (),
        labels: Mapping[str, str] | None = None,
        queue: str = "",
        cursor: str = "",
        timeout: float | None = None,
    ) -> AsyncIterator[JobEvent]:
        """Every job that passes the filter, then each change, without an end. Continues after a lost connection."""
        where = self.namespace if namespace is None else namespace
        only = filter_of(where, names, phases, labels, queue)
        return self._iterate(watch(self._env, only, cursor=cursor, view=v1.JOB_VIEW_BASIC, timeout=timeout))

    def logs(
        self,
        job: JobRef,
        *,
        follow: bool = False,
        replica: str = "",
        container: str = "",
        tail: int | None = None,
        timestamps: bool = False,
        previous: bool = False,
    ) -> AsyncIterator[LogLine]:
        """The lines that the job's containers write."""
        request = log_request(
            job,
            self.namespace,
            follow=follow,
            replica=replica,
            container=container,
            tail=tail,
            previous=previous,
        )
        return self._iterate(logs(self._env, request, timestamps=timestamps))

    def token(
        self,
        pool: str,
        *,
        amount: int = 1,
        lease: float | None = None,
        wait: float | None = None,
        token: str | None = None,
        project: str = "",
        namespace: str = "",
        queue: str = "",
        holder: str = "",
        priority: int = 0,
        on_lost: Callable[[str], None] | None = None,
    ) -> AsyncHeldToken:
        """Holds a token of a pool in a ``with`` statement: waits in line, renews the lease, releases at the end."""
        request = token_request(
            pool,
            amount=amount,
            lease=lease,
            token=token,
            project=project,
            namespace=namespace,
            queue=queue,
            holder=holder,
            priority=priority,
        )
        return AsyncHeldToken(self, request, wait, on_lost)

    def _call(self, rpc: Rpc, request: Any, timeout: float | None) -> Any:
        if rpc.is_stream:
            return self._iterate(stream(rpc, request, timeout))
        return self._run(call_rpc(self._env, rpc, request, timeout))

    async def _run(self, flow: Flow[T]) -> T:
        return await _Run(self._lines).result(flow)

    def _iterate(self, flow: Flow[None]) -> AsyncIterator[Any]:
        return _Run(self._lines).values(flow)


class AsyncHeldToken:
    """A token that this process holds, and renews in a task. ``AsyncClient.token`` makes it.

    ``fence``: the number of the grant. Pass it to what the token protects, which can refuse an older one.
    """

    fence: int

    def __init__(
        self,
        client: AsyncClient,
        request: v1.WaitForResourceRequest,
        wait: float | None,
        on_lost: Callable[[str], None] | None,
    ) -> None:
        self._client = client
        self._request = request
        self._wait = wait
        self._on_lost = on_lost
        self._grant: Grant | None = None
        self._task: asyncio.Task[None] | None = None
        self.pool = request.resource_namespace
        self.token = request.allocation_token

    async def __aenter__(self) -> AsyncHeldToken:
        if self._grant is not None:
            raise RuntimeError("a token is held once; AsyncClient.token makes another one")
        grant = await self._client._run(acquire(self._client._env, self._request, wait=self._wait))
        self._grant, self.fence = grant, grant.fence
        self._task = asyncio.create_task(self._keep(grant), name=f"gangway-{self.token}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        lost = self.lost
        await self._client._run(release(self._client._env, self._request))
        if lost and error is None:
            raise TokenLost(self._message(lost))

    @property
    def lost(self) -> str:
        """Why the token is lost. Empty: it is held."""
        return "" if self._grant is None else self._grant.lease.why_lost(self._client._env.now())

    @property
    def left(self) -> float | None:
        """Seconds until the lease is over by this machine's clock. None: the token does not lapse."""
        return None if self._grant is None else self._grant.lease.left(self._client._env.now())

    def check(self) -> None:
        """Raises TokenLost if the token is lost: the service said so, or the lease is over by this machine's clock."""
        lost = self.lost
        if lost:
            raise TokenLost(self._message(lost))

    def _message(self, lost: str) -> str:
        return f"token {self.token} of pool {self.pool} is lost: {lost}"

    async def _keep(self, grant: Grant) -> None:
        try:
            await self._client._run(keep(self._client._env, self._request, grant.lease, self._tell))
        except Exception as error:  # Such as a closed client. The lease then ends the token.
            LOG.warning("token %s of pool %s is not renewed any more: %s", self.token, self.pool, error)

    def _tell(self, lost: str) -> None:
        LOG.warning("%s", self._message(lost))
        if self._on_lost is not None:
            self._on_lost(lost)


class _Run:
    """Carries out the effects of one flow by coroutines."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._stream: Any = None
        self._address = ""

    async def result(self, flow: Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                try:
                    answer = await self._perform(effect)
                except BaseException as error:
                    effect = flow.throw(error)
                else:
                    effect = flow.send(answer)
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            self._end_stream()
            flow.close()

    async def values(self, flow: Flow[None]) -> AsyncIterator[Any]:
        try:
            effect = next(flow)
            while True:
                if isinstance(effect, Emit):
                    yield effect.value
                    effect = flow.send(None)
                    continue
                try:
                    answer = await self._perform(effect)
                except BaseException as error:
                    effect = flow.throw(error)
                else:
                    effect = flow.send(answer)
        except StopIteration:
            return
        finally:
            self._end_stream()
            flow.close()

    async def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Call):
            return await self._call(effect)
        if isinstance(effect, Open):
            self._end_stream()
            method, self._address = self._lines.method(effect.rpc)
            self._stream = method(effect.request, timeout=effect.timeout, metadata=self._lines.metadata())
            return None
        if isinstance(effect, Next):
            return await self._next()
        if isinstance(effect, Pause):
            return await asyncio.sleep(effect.seconds)
        raise AssertionError(effect)

    async def _call(self, effect: Call) -> Any:
        method, address = self._lines.method(effect.rpc)
        try:
            return await method(effect.request, timeout=effect.timeout, metadata=self._lines.metadata())
        except grpc.RpcError as error:
            raise self._failure(error, address) from None

    async def _next(self) -> Any:
        try:
            message = await self._stream.read()
        except grpc.RpcError as error:
            raise self._failure(error, self._address) from None
        return None if message is grpc.aio.EOF else message

    def _failure(self, error: grpc.RpcError, address: str) -> CallError:
        failure = error_of_rpc(error)
        if failure.code in UNREACHED:
            self._lines.failed(address)
        return failure

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None
