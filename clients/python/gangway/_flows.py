"""The flows of calls, watches, waits and logs. ``Client`` and ``AsyncClient`` run the same ones."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Iterable, Sequence, Union

from . import v1
from ._flow import LOG, Call, Emit, Env, Flow, Next, Open, Pause, consume
from ._retry import CALL_S, Backoff, CallRetry, StreamRetry
from ._services import RPCS, Rpc
from .errors import CallError, JobCancelled, JobFailed, JobGone, NotFound, WaitTimeout, status_error

BATCH_JOBS_MAX = 1000
"""As many as the service takes in one call."""
BATCH_BYTES_MAX = 8 * 1024 * 1024
"""Half of what the service takes in one call, so that the rest of the message has room."""
PAGE_SIZE = 500

JobRef = Union[v1.Job, str]
"""A job, its name, or ``NAMESPACE/NAME``."""


@dataclass(frozen=True)
class JobEvent:
    """A change of a job, or of what is known of jobs.

    ``type``: ``ADDED``, ``MODIFIED``, ``DELETED``: the job after the change, or before it if it was deleted.
    ``BOOKMARK``: the cursor is newer; the first one says that all jobs that existed at the start were sent.
    ``GAP``: forget all jobs; they are sent again.
    """

    type: str
    job: v1.Job | None
    cursor: str
    """Where a later watch can continue. Empty while the jobs that existed at the start are sent."""


@dataclass(frozen=True)
class LogLine:
    """A line of a container's log."""

    replica: str
    """Such as ``Worker/0``."""
    container: str
    text: str
    time: datetime | None
    """When the cluster took the line, in UTC. None: times were not requested, or the line was kept."""
    partial: bool
    """True: the line is long, and the next one of this replica continues it."""
    kept: bool
    """True: the line is not read from a pod now. It was kept when the container failed."""


def place_of(job: JobRef, namespace: str) -> tuple[str, str]:
    """Namespace and name of a job."""
    if not isinstance(job, str):
        return job.metadata.namespace or namespace, job.metadata.name
    before, slash, name = job.rpartition("/")
    return (before if slash else namespace), name


def call(env: Env, name: str, request: Any, timeout: float | None = None) -> Flow[Any]:
    """One call with one answer. Repeats it after UNAVAILABLE and after a try without an answer."""
    return (yield from call_rpc(env, RPCS[name], request, timeout))


def call_rpc(env: Env, rpc: Rpc, request: Any, timeout: float | None = None) -> Flow[Any]:
    request = _with_request_ids(request)
    retry = CallRetry(env.now() + (CALL_S if timeout is None else timeout), Backoff(env.random))
    is_first = True
    while True:
        try:
            return (yield Call(rpc, request, retry.try_timeout(env.now())))
        except CallError as error:
            pause = retry.pause_after(error, env.now())
            if pause is None:
                raise
            if is_first:
                LOG.warning("%s/%s: %s; trying again", rpc.service, rpc.name, error)
        is_first = False
        yield Pause(pause)


def _with_request_ids(request: Any) -> Any:
    """The request, in which each job to create has a request id: a call that is repeated creates nothing twice."""
    is_batch = isinstance(request, v1.BatchCreateJobsRequest)
    if not is_batch and not isinstance(request, v1.CreateJobRequest):
        return request
    copy: Any = type(request)()
    copy.CopyFrom(request)
    for one in copy.requests if is_batch else [copy]:
        one.request_id = one.request_id or uuid.uuid4().hex
    return copy


def stream(rpc: Rpc, request: Any, timeout: float | None) -> Flow[None]:
    """A stream as it is, which does not continue after an error."""
    yield Open(rpc, request, timeout)
    while True:
        message = yield Next()
        if message is None:
            return
        yield Emit(message)


def pages(env: Env, name: str, request: Any, field: str, timeout: float | None) -> Flow[None]:
    """Emits every item of a list, page by page."""
    token = request.page_token
    while True:
        page = type(request)()
        page.CopyFrom(request)
        page.page_size = page.page_size or PAGE_SIZE
        page.page_token = token
        answer = yield from call(env, name, page, timeout)
        for item in getattr(answer, field):
            yield Emit(item)
        token = answer.next_page_token
        if not token:
            return


def create(
    env: Env,
    asked: v1.CreateJobRequest,
    *,
    request_id: str | None,
    validate_only: bool,
    strict: bool,
    timeout: float | None,
) -> Flow[v1.CreateJobResponse]:
    """Creates one job."""
    request = _asked(asked, request_id=request_id or "", validate_only=validate_only, strict=strict)
    answer: v1.CreateJobResponse = yield from call(env, "JobService/CreateJob", request, timeout)
    _log_warnings(answer)
    return answer


def _asked(asked: v1.CreateJobRequest, **settings: Any) -> v1.CreateJobRequest:
    request = v1.CreateJobRequest(**settings)
    request.MergeFrom(asked)
    return request


def create_all(
    env: Env,
    jobs: Sequence[v1.CreateJobRequest],
    *,
    request_ids: Sequence[str] | None,
    strict: bool,
    timeout: float | None,
) -> Flow[list[v1.Job | CallError]]:
    """Creates jobs by as few calls as they fit into. Each has its own outcome."""
    ids = list(request_ids) if request_ids is not None else [""] * len(jobs)
    if len(ids) != len(jobs):
        raise ValueError(f"there are {len(jobs)} jobs and {len(ids)} request ids")
    requests = [_asked(job, request_id=one, strict=strict) for job, one in zip(jobs, ids)]
    outcomes: list[v1.Job | CallError] = []
    for batch in batches(requests):
        answer = yield from call(env, "JobService/BatchCreateJobs", v1.BatchCreateJobsRequest(requests=batch), timeout)
        for result in answer.results:
            if result.WhichOneof("result") == "error":
                outcomes.append(status_error(result.error))
            else:
                _log_warnings(result.response)
                outcomes.append(result.response.job)
    return outcomes


def batches(requests: Iterable[v1.CreateJobRequest]) -> Iterable[list[v1.CreateJobRequest]]:
    """Cuts requests into batches that the service takes."""
    batch: list[v1.CreateJobRequest] = []
    size = 0
    for request in requests:
        own = request.ByteSize()
        if batch and (len(batch) == BATCH_JOBS_MAX or size + own > BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(request)
        size += own
    if batch:
        yield batch


def _log_warnings(answer: v1.CreateJobResponse) -> None:
    for warning in answer.warnings:
        LOG.warning("job %s: %s: %s", answer.job.metadata.name, warning.field, warning.message)


def delete(env: Env, namespace: str, name: str, timeout: float | None) -> Flow[None]:
    """Deletes a job. A repeated call that finds it gone has succeeded."""
    retry = CallRetry(env.now() + (CALL_S if timeout is None else timeout), Backoff(env.random))
    rpc = RPCS["JobService/DeleteJob"]
    is_repeated = False
    while True:
        try:
            yield Call(rpc, v1.DeleteJobRequest(namespace=namespace, name=name), retry.try_timeout(env.now()))
            return
        except CallError as error:
            if is_repeated and isinstance(error, NotFound):
                return
            pause = retry.pause_after(error, env.now())
            if pause is None:
                raise
        is_repeated = True
        yield Pause(pause)


def log_break(name: str, failure: CallError | None, retry: StreamRetry) -> None:
    """Warns once of a stream that broke and is opened again."""
    level = logging.WARNING if retry.tries == 1 else logging.INFO
    LOG.log(level, "%s: %s; opening it again", name, failure or "the stream ended")


class WatchState:
    """Where a watch is, and what a new stream must say. It makes no call."""

    def __init__(self, cursor: str) -> None:
        self.cursor = cursor
        self._is_listing = cursor == ""
        self._has_emitted = False

    def take(self, message: v1.WatchJobsResponse) -> JobEvent:
        kind = v1.WatchJobsResponse.Type.Name(message.type).removeprefix("TYPE_")
        if kind == "GAP":
            self._is_listing = True
        elif kind == "BOOKMARK":
            self._is_listing = False
        return JobEvent(kind, message.job if message.HasField("job") else None, message.cursor)

    def handled(self, event: JobEvent) -> None:
        """Moves the cursor once its caller has handled an event, and never within a listing: it is repeated then."""
        self._has_emitted = True
        if not self._is_listing and event.cursor:
            self.cursor = event.cursor

    def broken(self, error: CallError | None) -> JobEvent | None:
        """Takes note of a stream that ended. Returns what the caller must hear before the next one, if anything."""
        told = error.metadata.get("cursor") if error is not None and error.reason == "WATCH_TOO_SLOW" else None
        if told and not self._is_listing:
            self.cursor = told
        if self.cursor == "" and self._has_emitted:
            self._is_listing = True
            return JobEvent("GAP", None, "")
        return None


def watch(
    env: Env, job_filter: v1.JobFilter, *, cursor: str, view: v1.JobView, timeout: float | None
) -> Flow[None]:
    """Emits events of jobs, and continues after a lost connection. Ends after the timeout."""
    state = WatchState(cursor)
    ends_at = None if timeout is None else env.now() + timeout
    retry = StreamRetry(Backoff(env.random), also=("RESOURCE_EXHAUSTED",))
    while True:
        failure: CallError | None = None
        try:
            left = None if ends_at is None else max(0.001, ends_at - env.now())
            request = v1.WatchJobsRequest(filter=job_filter, cursor=state.cursor, view=view)
            retry.opened(env.now())
            yield Open(RPCS["JobService/WatchJobs"], request, left)
            while True:
                message = yield Next()
                if message is None:
                    break
                retry.heard()
                event = state.take(message)
                yield Emit(event)
                state.handled(event)
        except CallError as error:
            failure = error
        if ends_at is not None and env.now() >= ends_at:
            return
        pause = retry.pause_after(failure, env.now())
        if pause is None and failure is not None:
            raise failure
        log_break("WatchJobs", failure, retry)
        yield Pause(pause or 0.0)
        gap = state.broken(failure)
        if gap is not None:
            yield Emit(gap)


TERMINAL = (v1.JOB_PHASE_SUCCEEDED, v1.JOB_PHASE_FAILED, v1.JOB_PHASE_CANCELLED)


class WaitState:
    """Decides from events of one job when a wait is over. It makes no call.

    ``uid``: the job that is waited for; another job may get its name. Empty: the first one of the name.
    """

    def __init__(self, namespace: str, name: str, uid: str, until: str) -> None:
        if until not in ("ended", "running"):
            raise ValueError(f'until must be "ended" or "running", not {until!r}')
        self._label = f"{namespace}/{name}"
        self._uid = uid
        self._until = until
        self._listed = False
        self.last: v1.Job | None = None

    def take(self, event: JobEvent) -> v1.Job | None:
        """The job in its last state, once the wait is over. Raises JobFailed, JobCancelled, JobGone or NotFound."""
        if event.type == "GAP":
            self._listed = False
        if event.type == "BOOKMARK" and not self._listed:
            self._listed = True
            raise self._gone()
        job = event.job
        if job is None or (self._uid and job.metadata.uid != self._uid):
            return None
        self._uid = job.metadata.uid
        self._listed = True
        self.last = job
        phase = job.status.phase
        if phase == v1.JOB_PHASE_SUCCEEDED:
            return job
        if phase == v1.JOB_PHASE_CANCELLED:
            raise JobCancelled(job)
        if phase == v1.JOB_PHASE_FAILED:
            raise JobFailed(job)
        if event.type == "DELETED":
            raise self._gone()
        return job if self._until == "running" and phase == v1.JOB_PHASE_RUNNING else None

    def _gone(self) -> Exception:
        if self._uid:
            return JobGone(f"job {self._label} was deleted; how it ended is not known")
        return NotFound("NOT_FOUND", f"there is no job {self._label}")

    def timed_out(self, timeout: float) -> WaitTimeout:
        where = "it was not heard of"
        if self.last is not None:
            status = self.last.status
            phase = v1.JobPhase.Name(status.phase).removeprefix("JOB_PHASE_")
            why = ": ".join(part for part in (status.waiting.reason, status.waiting.message) if part)
            where = f"it is {phase}{f': {why}' if why else ''}"
        return WaitTimeout(f"job {self._label} is not {self._until} after {timeout:g} s; {where}")


def wait(env: Env, job: JobRef, namespace: str, *, until: str, timeout: float | None) -> Flow[v1.Job]:
    """Waits for a job by a watch, so that it needs no polls and outlives restarts of the service."""
    where, name = place_of(job, namespace)
    state = WaitState(where, name, "" if isinstance(job, str) else job.metadata.uid, until)
    only = v1.JobFilter(namespace=where, names=[name])
    watching = watch(env, only, cursor="", view=v1.JOB_VIEW_BASIC, timeout=timeout)
    ended = yield from consume(watching, state.take)
    if ended is None:
        raise state.timed_out(timeout or 0.0)
    return ended


class ShownLines:
    """Tells new lines from those that were emitted before a log stream broke. It makes no call."""

    def __init__(self) -> None:
        self.any = False
        # Of each container: the time of its last line, and how many of its lines have this time.
        self._last: dict[tuple[str, str], tuple[int, int]] = {}
        # The same when the stream began again.
        self._before: dict[tuple[str, str], tuple[int, int]] = {}
        # How many lines of that time the stream has repeated since.
        self._repeated: dict[tuple[str, str], int] = {}
        # The kept logs that were emitted. The service bounds how many a job has.
        self._kept: set[tuple[object, ...]] = set()

    def begin(self) -> None:
        self._repeated.clear()
        self._before = dict(self._last)

    def take(self, message: v1.StreamJobLogsResponse, timestamps: bool) -> list[LogLine]:
        is_kept = message.HasField("kept")
        if is_kept:
            kept = message.kept
            key = (kept.pod, kept.container, kept.attempt, kept.admission, kept.restarts)
            if key in self._kept:
                return []
            self._kept.add(key)
            self.any = True
        lines = []
        for line in message.lines:
            if is_kept or self._is_new(line):
                shows_time = timestamps and line.HasField("time")
                at = line.time.ToDatetime().replace(tzinfo=timezone.utc) if shows_time else None
                lines.append(LogLine(line.replica, line.container, line.text, at, line.partial, is_kept))
        return lines

    def _is_new(self, line: v1.LogLine) -> bool:
        key = (line.replica, line.container)
        if line.HasField("time"):
            at = line.time.ToNanoseconds()
            if self._repeats(key, at):
                return False
            last = self._last.get(key)
            self._last[key] = (at, last[1] + 1 if last is not None and last[0] == at else 1)
        self.any = True
        return True

    def _repeats(self, key: tuple[str, str], at: int) -> bool:
        before = self._before.get(key)
        if before is None or at > before[0]:
            return False
        if at < before[0]:
            return True
        repeated = self._repeated.get(key, 0)
        self._repeated[key] = repeated + 1
        return repeated < before[1]


def logs(env: Env, request: v1.StreamJobLogsRequest, *, timestamps: bool) -> Flow[None]:
    """Emits the lines of a log. With ``follow`` it continues after a lost connection, with no line twice."""
    shown = ShownLines()
    retry = StreamRetry(Backoff(env.random))
    # Times tell which lines a new stream repeats.
    request.timestamps = timestamps or request.follow
    while True:
        shown.begin()
        failure: CallError | None = None
        try:
            asked = v1.StreamJobLogsRequest()
            asked.CopyFrom(request)
            retry.opened(env.now())
            yield Open(RPCS["JobService/StreamJobLogs"], asked, None)
            while True:
                message = yield Next()
                if message is None:
                    return
                retry.heard()
                for line in shown.take(message, timestamps):
                    yield Emit(line)
        except CallError as error:
            failure = error
        if shown.any and not request.follow:
            raise failure
        pause = retry.pause_after(failure, env.now())
        if pause is None:
            raise failure
        if shown.any:
            request.ClearField("tail_lines")
        log_break("StreamJobLogs", failure, retry)
        yield Pause(pause)
