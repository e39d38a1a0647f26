"""Errors of calls, one class for each status code of gRPC, and errors of jobs and tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from . import v1


class Error(Exception):
    """The base of all errors of this package."""


class ConfigError(Error, ValueError):
    """Addresses, files or a context of the client are wrong. The message says which, and what is allowed."""


class ManifestError(Error, ValueError):
    """A manifest is wrong.

    ``problems``: each wrong member with what is wrong about it, such as ``spec.runPolicy.backofLimit: is not a known
    field``.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class FieldError:
    """A field of a request that is wrong."""

    field: str
    """Its path, such as ``job.spec.replica_specs[Worker].replicas``."""
    message: str
    """What is wrong, and what is allowed."""


@dataclass(frozen=True)
class Obstacle:
    """A state that prevents a call."""

    type: str
    subject: str
    message: str


class CallError(Error):
    """The service refused a call, or could not be reached.

    Each status code has a class of its own, such as ``NotFound``. Other codes are a plain ``CallError``.
    """

    code: str
    """The name of the status code, such as ``NOT_FOUND``."""
    message: str
    """What the service says."""
    reason: str
    """The reason in ErrorInfo, such as ``JOB_NOT_FOUND``; the comments of the API name it. Empty: none was sent."""
    metadata: Mapping[str, str]
    """Further values of the reason."""
    fields: Sequence[FieldError]
    """Every wrong field of the request. Empty: none was named."""
    obstacles: Sequence[Obstacle]
    """What is in the way, for ``FailedPrecondition``."""
    retry_after: float | None
    """Seconds after which the service asks to repeat the same call. None: it did not say."""

    def __init__(self, code: str, message: str, status: v1.Status | None = None) -> None:
        self.code, self.message = code, message
        self.reason, self.metadata, self.retry_after = "", {}, None
        fields: list[FieldError] = []
        obstacles: list[Obstacle] = []
        for detail in status.details if status is not None else ():
            info, bad = v1.ErrorInfo(), v1.BadRequest()
            retry, failure = v1.RetryInfo(), v1.PreconditionFailure()
            if detail.Unpack(info):
                self.reason, self.metadata = info.reason, dict(info.metadata)
            elif detail.Unpack(bad):
                fields += [FieldError(one.field, one.description) for one in bad.field_violations]
            elif detail.Unpack(failure):
                obstacles += [Obstacle(one.type, one.subject, one.description) for one in failure.violations]
            elif detail.Unpack(retry):
                self.retry_after = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
        self.fields, self.obstacles = tuple(fields), tuple(obstacles)
        super().__init__(f"{code}: {message}")


class Cancelled(CallError):
    """CANCELLED: this client ended the call."""


class InvalidArgument(CallError):
    """INVALID_ARGUMENT: the request is wrong. ``fields`` names every wrong field."""


class DeadlineExceeded(CallError):
    """DEADLINE_EXCEEDED: no answer came within the timeout. The call may have taken effect."""


class NotFound(CallError):
    """NOT_FOUND: the object does not exist, or the caller may not see it."""


class AlreadyExists(CallError):
    """ALREADY_EXISTS: the name, the token or the request id is taken by something else."""


class PermissionDenied(CallError):
    """PERMISSION_DENIED: the caller may not do this, or the token is another holder's."""


class ResourceExhausted(CallError):
    """RESOURCE_EXHAUSTED: a limit is reached, or the request is too large."""


class FailedPrecondition(CallError):
    """FAILED_PRECONDITION: the state does not allow the call. ``obstacles`` says what is in the way."""


class Aborted(CallError):
    """ABORTED: the resource version is stale. Read the object again and decide anew."""


class Unimplemented(CallError):
    """UNIMPLEMENTED: the service does not know the method. It may be older than this client."""


class InternalError(CallError):
    """INTERNAL: the service failed. The message quotes a reference that is also in its log."""


class Unavailable(CallError):
    """UNAVAILABLE: the service cannot be reached or cannot answer now. This client has repeated the call before."""


class Unauthenticated(CallError):
    """UNAUTHENTICATED: no token or certificate was shown, or the one that was shown does not count."""


_BY_CODE: Mapping[str, type[CallError]] = {
    "CANCELLED": Cancelled,
    "INVALID_ARGUMENT": InvalidArgument,
    "DEADLINE_EXCEEDED": DeadlineExceeded,
    "NOT_FOUND": NotFound,
    "ALREADY_EXISTS": AlreadyExists,
    "PERMISSION_DENIED": PermissionDenied,
    "RESOURCE_EXHAUSTED": ResourceExhausted,
    "FAILED_PRECONDITION": FailedPrecondition,
    "ABORTED": Aborted,
    "UNIMPLEMENTED": Unimplemented,
    "INTERNAL": InternalError,
    "UNAVAILABLE": Unavailable,
    "UNAUTHENTICATED": Unauthenticated,
}

# The names of gRPC's codes by number, for statuses inside of answers.
_CODE_NAMES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS "
    "UNAUTHENTICATED"
).split()


def call_error(code: str, message: str, status: v1.Status | None = None) -> CallError:
    """The error of a code, of the code's own class."""
    return _BY_CODE.get(code, CallError)(code, message, status)


def status_error(status: v1.Status) -> CallError:
    """The error of a status inside of an answer, such as that of one job of a batch."""
    known = 0 <= status.code < len(_CODE_NAMES)
    return call_error(_CODE_NAMES[status.code] if known else f"CODE_{status.code}", status.message, status)


def error_of_rpc(error: Any) -> CallError:
    """The error of a failed call of grpcio."""
    encoded = next((value for key, value in error.trailing_metadata() or () if key == "grpc-status-details-bin"), None)
    status = None
    if encoded is not None:
        try:
            status = v1.Status.FromString(encoded)
        except Exception:  # A proxy may have cut the details. Code and message are enough.
            status = None
    return call_error(error.code().name, error.details() or "", status)


class WaitTimeout(Error, TimeoutError):
    """What was waited for did not happen within the timeout."""


class JobFailed(Error):
    """A job ended and did not succeed.

    ``job``: its last state. ``code``: such as ``ExitCode``, ``OOMKilled`` or ``DeadlineExceeded``. ``exit_code``: that
    of the container; None if it is not known. ``container``: the container that failed; empty if none did.
    """

    def __init__(self, job: v1.Job) -> None:
        self.job = job
        status, failure = job.status, job.status.failure
        self.code = failure.code
        self.message = failure.message
        self.container = failure.container
        # A limit that ended the job has no exit code of its own: its last failure has one.
        last = status.attempts.last_failure
        found = failure if failure.HasField("exit_code") or last.container != failure.container else last
        self.exit_code: int | None = found.exit_code if found.HasField("exit_code") else None
        is_system = failure.kind == v1.FAILURE_KIND_SYSTEM
        self.is_system = is_system
        """True: the platform caused the failure, not the job's program."""
        phase = v1.JobPhase.Name(status.phase).removeprefix("JOB_PHASE_")
        why = ": ".join(part for part in (self.code, self.message) if part)
        super().__init__(f"job {job.metadata.namespace}/{job.metadata.name} is {phase}{f': {why}' if why else ''}")


class JobCancelled(JobFailed):
    """A job was cancelled."""


class JobGone(Error):
    """A job was deleted while it was waited for, so how it ended is not known."""


class TokenRefused(Error):
    """A pool did not grant a token at once, and the caller did not want to wait.

    ``status``: ``EXHAUSTED`` or ``NAMESPACE_QUOTA_EXCEEDED``. ``violated``: the limit that is in the way.
    """

    def __init__(self, pool: str, status: str, violated: v1.Violation) -> None:
        self.pool, self.status, self.violated = pool, status, violated
        level = v1.Violation.Scope.Name(violated.scope).removeprefix("SCOPE_").lower()
        super().__init__(
            f"pool {pool}: {status}: {level} {violated.name} uses {violated.used} of {violated.limit}, "
            f"and {violated.requested} was requested"
        )


class TokenLost(Error):
    """A token is not held any more, or may not be. Another caller may have it: stop what it allowed."""
