"""The client with blocking calls."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, List, Mapping, Sequence, TypeVar

import grpc

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
        AccessService,
        ClusterService,
        JobService,
        NamespaceService,
        PriorityClassService,
        QueueService,
        ResourceManager,
        RuntimeService,
    )

T = TypeVar("T")


class Client:
    """Calls a Gangway service. Threads may share it. ``close`` it, or use it in a ``with`` statement.

    Without arguments it calls the service that the command line calls: that of GANGWAY_ADDRESS, of the current
    context, or the one at 127.0.0.1:7443. A call is repeated while the service is away: a restart shows no error.

    address: HOST:PORT, or several of one service with commas: after a failed call the next one goes to the next one.
    context: a context of the command line. config_file: the file of its contexts.
    namespace: of jobs that name none.
    token: a bearer token. token_file: its file, which is read again when it has changed; also one of ``gangway login``.
    tls: encrypts calls. ca_file: the authorities of the service's certificate, in PEM; omitted: those of grpcio.
    client_cert_file, client_key_file: the certificate that this client shows. tls_server_name: the name in the
    service's certificate, if the address has another one.

    Raises ConfigError if any of these is wrong. Calls raise CallError; each code has a class of its own.
    """

    jobs: JobService
    """All methods of JobService, with the messages of ``gangway.v1``. So are the others."""
    queues: QueueService
    priority_classes: PriorityClassService
    runtimes: RuntimeService
    namespaces: NamespaceService
    clusters: ClusterService
    access: AccessService
    resources: ResourceManager

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
        self._lines = Lines(config, grpc.insecure_channel, grpc.secure_channel)
        self._manifests = Manifests(self._env, self.namespace)
        self.jobs = bind("JobService", self._call)
        self.queues = bind("QueueService", self._call)
        self.priority_classes = bind("PriorityClassService", self._call)
        self.runtimes = bind("RuntimeService", self._call)
        self.namespaces = bind("NamespaceService", self._call)
        self.clusters = bind("ClusterService", self._call)
        self.access = bind("AccessService", self._call)
        self.resources = bind("ResourceManager", self._call)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all calls and connections."""
        for channel in self._lines.close():
            channel.close()

    def submit(
        self,
        job: Manifest,
        *,
        request_id: str | None = None,
        namespace: str | None = None,
        validate_only: bool = False,
        strict: bool = False,
        timeout: float | None = None,
    ) -> v1.Job:
        """Creates a job, and returns it as the service has recorded it. Logs what is probably a mistake in it.

        job: a ``v1.Job``, as ``torchrun`` makes it; the text of a manifest; the ``pathlib.Path`` of its file; its dict.
        request_id: the same id and job return the job that exists, also from another process. Omitted: a new one for
        each call, so that a call which is repeated after a lost answer creates nothing twice.
        namespace: of a job that names none. validate_only: checks the job, and creates nothing.
        strict: probable mistakes are errors. timeout: seconds, with all tries; omitted: 60.
        Raises ManifestError, InvalidArgument, AlreadyExists, NotFound for a namespace that does not exist, and others.
        """
        read = self._run(self._manifests.request(job, namespace))
        flow = create(
            self._env, read, request_id=request_id, validate_only=validate_only, strict=strict, timeout=timeout
        )
        return self._run(flow).job

    def submit_all(
        self,
        jobs: Iterable[Manifest],
        *,
        request_ids: Sequence[str] | None = None,
        namespace: str | None = None,
        strict: bool = False,
        timeout: float | None = None,
    ) -> List[v1.Job | CallError]:
        """Creates many jobs by few calls. Returns the job or the error of each one, in their order.

        jobs: as in ``submit``; a manifest may have several documents. request_ids: one for each job.
        timeout: seconds for each call of up to 1,000 jobs; omitted: 60.
        Raises ManifestError before anything is created, and CallError if a call fails as a whole.
        """
        read = self._run(self._manifests.requests(jobs, namespace))
        return self._run(create_all(self._env, read, request_ids=request_ids, strict=strict, timeout=timeout))

    def simulate(self, job: Manifest, *, namespace: str | None = None) -> v1.SimulateJobResponse:
        """Says whether a job could run, now or later, and on which clusters. Creates nothing."""
        read = self._run(self._manifests.request(job, namespace))
        return self.jobs.SimulateJob(simulation_of(read))

    def get(self, job: JobRef) -> v1.Job:
        """The job as it is now. Raises NotFound."""
        namespace, name = place_of(job, self.namespace)
        return self.jobs.GetJob(v1.GetJobRequest(namespace=namespace, name=name)).job

    def list(
        self,
        *,
        namespace: str | None = None,
        names: Iterable[str] = (),
        phases: Iterable[str] = (),
        labels: Mapping[str, str] | None = None,
        queue: str = "",
        order_by: str = "",
    ) -> Iterator[v1.Job]:
        """All jobs that pass the filter, read page by page while you iterate.

        namespace: omitted: the client's own; empty: all. phases: such as ``["running", "waiting"]``.
        order_by: ``create_time``, ``create_time desc``, ``name``, ``priority desc``, or ``held desc``.
        """
        where = self.namespace if namespace is None else namespace
        request = v1.ListJobsRequest(filter=filter_of(where, names, phases, labels, queue), order_by=order_by)
        return self._iterate(pages(self._env, "JobService/ListJobs", request, "jobs", None))

    def pods(self, job: JobRef) -> Iterator[v1.JobPod]:
        """The pods of a job's admission, as their cluster reports them now."""
        namespace, name = place_of(job, self.namespace)
        request = v1.ListJobPodsRequest(namespace=namespace, name=name)
        return self._iterate(pages(self._env, "JobService/ListJobPods", request, "pods", None))

    def events(self, job: JobRef) -> Iterator[v1.JobEvent]:
        """The events of all jobs that have had this name, oldest first."""
        namespace, name = place_of(job, self.namespace)
        request = v1.ListJobEventsRequest(namespace=namespace, name=name)
        return self._iterate(pages(self._env, "JobService/ListJobEvents", request, "events", None))

    def explain(self, job: JobRef) -> v1.ExplainJobResponse:
        """Why a job waits, where it runs, or why it failed: ``summary`` in one sentence. Raises NotFound."""
        namespace, name = place_of(job, self.namespace)
        return self.jobs.ExplainJob(v1.ExplainJobRequest(namespace=namespace, name=name))

    def cancel(self, job: JobRef, *, reason: str = "") -> v1.Job:
        """Ends a job and keeps its record. Raises NotFound, or FailedPrecondition if it had already ended."""
        namespace, name = place_of(job, self.namespace)
        return self.jobs.CancelJob(v1.CancelJobRequest(namespace=namespace, name=name, reason=reason)).job

    def delete(self, job: JobRef) -> None:
        """Ends a job, and removes its record once nothing of it is left in its clusters. Raises NotFound."""
        self._run(delete(self._env, *place_of(job, self.namespace), None))

    def suspend(self, job: JobRef) -> v1.Job:
        """Takes the pods of a job away, and keeps its record. Raises NotFound or FailedPrecondition."""
        return self.jobs.UpdateJob(suspend_request(job, self.namespace, True)).job

    def resume(self, job: JobRef) -> v1.Job:
        """Lets a suspended job wait in its queue again. Raises NotFound or FailedPrecondition."""
        return self.jobs.UpdateJob(suspend_request(job, self.namespace, False)).job

    def wait(self, job: JobRef, *, until: str = "ended", timeout: float | None = None) -> v1.Job:
        """Waits until a job has succeeded, and returns it. Outlives lost connections and restarts of the service.

        until: ``ended``, or ``running``: also returns once the job runs. timeout: seconds; omitted: any time.
        Raises JobFailed (with code, exit_code, container), JobCancelled, JobGone if the job was deleted, NotFound,
        WaitTimeout, and Unavailable once the service has been away for ten minutes.
        """
        return self._run(wait(self._env, job, self.namespace, until=until, timeout=timeout))

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
    ) -> Iterator[JobEvent]:
        """Every job that passes the filter, then each change, without an end. Continues after a lost connection.

        cursor: that of an earlier event, after which to continue. Store a cursor once its event is handled.
        timeout: seconds after which the iteration ends; omitted: never. At an event GAP, forget all jobs.
        """
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
    ) -> Iterator[LogLine]:
        """The lines that the job's containers write.

        follow: waits for pods, and goes on until the job has ended, with no line twice after a lost connection.
        replica: such as ``Worker/0``, or ``Worker``. container: omitted: the kind's own. tail: so many last lines of
        each replica. timestamps: lines have times. previous: the log of the run before the last restart.
        Raises NotFound, FailedPrecondition if there is no log yet or any more, and others.
        """
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
    ) -> HeldToken:
        """Holds a token of a pool in a ``with`` statement: waits in line, renews the lease, releases at the end.

        lease: seconds after which the token lapses if this process cannot renew it; it is renewed at a third of them.
        Omitted: the pool's default. wait: seconds to wait in line; omitted: any time; 0: not at all.
        token: the caller's name for this token, unique in the pool; omitted: a new one.
        project, namespace: those that are charged. holder: omitted: the caller's identity. priority: in the line.
        on_lost: called once, in another thread, with the reason when the token is lost.

        Entering raises WaitTimeout, TokenRefused (if ``wait`` is 0), FailedPrecondition (NEVER_FITS) and other
        errors of calls. Leaving raises TokenLost if the token was lost and the body raised nothing.
        """
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
        return HeldToken(self, request, wait, on_lost)

    def _call(self, rpc: Rpc, request: Any, timeout: float | None) -> Any:
        if rpc.is_stream:
            return self._iterate(stream(rpc, request, timeout))
        return self._run(call_rpc(self._env, rpc, request, timeout))

    def _run(self, flow: Flow[T], stop: _Stop | None = None) -> T:
        return _Run(self._lines, stop).result(flow)

    def _iterate(self, flow: Flow[None]) -> Iterator[Any]:
        return _Run(self._lines, None).values(flow)


class HeldToken:
    """A token that this process holds, and renews in a thread. ``Client.token`` makes it.

    ``fence``: the number of the grant. Pass it to what the token protects, which can refuse an older one.
    """

    fence: int

    def __init__(
        self,
        client: Client,
        request: v1.WaitForResourceRequest,
        wait: float | None,
        on_lost: Callable[[str], None] | None,
    ) -> None:
        self._client = client
        self._request = request
        self._wait = wait
        self._on_lost = on_lost
        self._grant: Grant | None = None
        self._stop = _Stop()
        self._thread: threading.Thread | None = None
        self.pool = request.resource_namespace
        self.token = request.allocation_token

    def __enter__(self) -> HeldToken:
        if self._grant is not None:
            raise RuntimeError("a token is held once; Client.token makes another one")
        grant = self._client._run(acquire(self._client._env, self._request, wait=self._wait))
        self._grant, self.fence = grant, grant.fence
        # A daemon: a program that ends without leaving the `with` statement must not hang on it.
        self._thread = threading.Thread(target=self._keep, name=f"gangway-{self.token}", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        lost = self.lost
        self._client._run(release(self._client._env, self._request))
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

    def _keep(self) -> None:
        assert self._grant is not None
        try:
            self._client._run(keep(self._client._env, self._request, self._grant.lease, self._tell), self._stop)
        except _Stopped:
            pass
        except Exception as error:  # Such as a closed client. The lease then ends the token.
            LOG.warning("token %s of pool %s is not renewed any more: %s", self.token, self.pool, error)

    def _tell(self, lost: str) -> None:
        LOG.warning("%s", self._message(lost))
        if self._on_lost is not None:
            self._on_lost(lost)


class _Stopped(BaseException):
    """Ends a flow that another thread has stopped."""


class _Stop:
    """Ends the pause and the call of a flow in another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._current: Any = None

    def set(self) -> None:
        with self._lock:
            self._event.set()
            if self._current is not None:
                self._current.cancel()

    def pause(self, seconds: float) -> None:
        if self._event.wait(seconds):
            raise _Stopped

    def begins(self, current: Any) -> None:
        with self._lock:
            self._current = current
            if current is not None and self._event.is_set():
                current.cancel()

    def check(self) -> None:
        if self._event.is_set():
            raise _Stopped


class _Run:
    """Carries out the effects of one flow by blocking calls."""

    def __init__(self, lines: Lines, stop: _Stop | None) -> None:
        self._lines = lines
        self._stop = stop or _Stop()
        self._stream: Any = None
        self._address = ""
        self._is_unreached = False

    def result(self, flow: Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                try:
                    answer = self._perform(effect)
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

    def values(self, flow: Flow[None]) -> Iterator[Any]:
        try:
            effect = next(flow)
            while True:
                if isinstance(effect, Emit):
                    yield effect.value
                    effect = flow.send(None)
                    continue
                try:
                    answer = self._perform(effect)
                except BaseException as error:
                    effect = flow.throw(error)
                else:
                    effect = flow.send(answer)
        except StopIteration:
            return
        finally:
            self._end_stream()
            flow.close()

    def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Call):
            return self._call(effect)
        if isinstance(effect, Open):
            self._end_stream()
            method, self._address = self._lines.method(effect.rpc)
            self._stream = method(effect.request, timeout=effect.timeout, metadata=self._lines.metadata())
            return None
        if isinstance(effect, Next):
            return self._next()
        if isinstance(effect, Pause):
            return self._pause(effect.seconds)
        raise AssertionError(effect)

    def _pause(self, seconds: float) -> None:
        """Waits. grpcio makes progress only while a thread asks it for something, so a lost connection is watched."""
        channel = self._lines.channel() if self._is_unreached else None
        if channel is None:
            return self._stop.pause(seconds)

        def ignore(_: Any) -> None:
            pass

        channel.subscribe(ignore, try_to_connect=True)
        try:
            self._stop.pause(seconds)
        finally:
            channel.unsubscribe(ignore)

    def _call(self, effect: Call) -> Any:
        method, address = self._lines.method(effect.rpc)
        future = method.future(effect.request, timeout=effect.timeout, metadata=self._lines.metadata())
        self._stop.begins(future)
        try:
            answer = future.result()
            self._is_unreached = False
            return answer
        except grpc.FutureCancelledError:
            self._stop.check()
            raise
        except grpc.RpcError as error:
            raise self._failure(error, address) from None
        finally:
            self._stop.begins(None)
            future.cancel()

    def _next(self) -> Any:
        try:
            message = next(self._stream, None)
            self._is_unreached = False
            return message
        except grpc.RpcError as error:
            raise self._failure(error, self._address) from None

    def _failure(self, error: grpc.RpcError, address: str) -> CallError:
        failure = error_of_rpc(error)
        self._is_unreached = failure.code in UNREACHED
        if self._is_unreached:
            self._lines.failed(address)
        return failure

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None
