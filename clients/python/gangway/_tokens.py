"""The flows of tokens: to take one, to keep it, and to give it back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from . import v1
from ._flow import LOG, Call, Emit, Env, Flow, Next, Open, Pause
from ._flows import call, log_break
from ._lease import Lease
from ._retry import CALL_S, RETRIED, Backoff, CallRetry, StreamRetry
from ._services import RPCS
from .errors import CallError, TokenRefused, WaitTimeout, call_error

RELEASE_S = 15.0
"""How long a release is tried. After it, the lease ends the token."""
LEASE_S_MIN = 1.0
"""A shorter lease is over before a renewal can be answered."""


@dataclass(frozen=True)
class Grant:
    """A token that was granted."""

    fence: int
    lease: Lease


def acquire(env: Env, request: v1.WaitForResourceRequest, *, wait: float | None) -> Flow[Grant]:
    """Takes a token, and waits for it in the pool's line for ``wait`` seconds. None: for any time. 0: not at all.

    Gives the token back if the wait is over or the caller is interrupted: it may just have been granted.
    """
    ends_at = None if wait is None else env.now() + wait
    try:
        while True:
            if wait == 0:
                answer, sent_at = yield from _allocate(env, request)
            else:
                answer, sent_at = yield from _wait_in_line(env, request, ends_at, wait)
            seconds = yield from _lease_of(env, request, answer)
            lease = Lease(seconds, sent_at)
            if seconds is None or (wait == 0 and not answer.held):
                return Grant(answer.fence, lease)
            # The grant may be older than its answer, so when its lease began is known only from a renewal.
            sent_at = env.now()
            try:
                result = yield from renew_once(env, request, seconds / 2)
            except CallError as error:
                # Joins the line again, which returns the grant at once if it is still held.
                if wait != 0 and error.code in RETRIED:
                    continue
                raise
            if result.outcome == v1.RenewResult.OUTCOME_RENEWED:
                lease.renewed(sent_at)
                return Grant(result.fence, lease)
            if result.outcome != v1.RenewResult.OUTCOME_LOST:
                why = f"pool {request.resource_namespace}: the token cannot be renewed: {_word(result)}"
                raise call_error("PERMISSION_DENIED", why)
    except (CallError, TokenRefused) as error:
        if isinstance(error, CallError) and error.code in RETRIED:
            yield from release(env, request, timeout=1.0)
        raise
    except BaseException:
        yield from release(env, request)
        raise


def _allocate(env: Env, request: v1.WaitForResourceRequest) -> Flow[tuple[v1.AllocateResourceResponse, float]]:
    # Both requests have the same fields.
    once = v1.AllocateResourceRequest.FromString(request.SerializeToString())
    retry = CallRetry(env.now() + CALL_S, Backoff(env.random))
    while True:
        sent_at = env.now()
        try:
            answer = yield Call(RPCS["ResourceManager/AllocateResource"], once, retry.try_timeout(sent_at))
        except CallError as error:
            pause = retry.pause_after(error, env.now())
            if pause is None:
                raise
            yield Pause(pause)
            continue
        if answer.status != v1.ALLOCATION_STATUS_GRANTED:
            status = v1.AllocationStatus.Name(answer.status).removeprefix("ALLOCATION_STATUS_")
            raise TokenRefused(request.resource_namespace, status, answer.violated)
        return answer, sent_at


def _wait_in_line(
    env: Env, request: v1.WaitForResourceRequest, ends_at: float | None, wait: float | None
) -> Flow[tuple[v1.AllocateResourceResponse, float]]:
    """Joins the line again after a lost connection. Raises WaitTimeout."""
    retry = StreamRetry(Backoff(env.random))
    position: v1.LinePosition | None = None
    while True:
        failure: CallError | None = None
        sent_at = env.now()
        try:
            left = None if ends_at is None else max(0.001, ends_at - sent_at)
            retry.opened(env.now())
            yield Open(RPCS["ResourceManager/WaitForResource"], request, left)
            while True:
                message = yield Next()
                if message is None:
                    break
                if message.WhichOneof("update") == "granted":
                    return message.granted, sent_at
                retry.heard()
                position = message.position
        except CallError as error:
            failure = error
        if ends_at is not None and env.now() >= ends_at:
            raise WaitTimeout(_still_waiting(request.resource_namespace, position, wait or 0.0))
        pause = retry.pause_after(failure, env.now())
        if pause is None and failure is not None:
            raise failure
        log_break("WaitForResource", failure, retry)
        yield Pause(pause or 0.0)


def _still_waiting(pool: str, position: v1.LinePosition | None, wait: float) -> str:
    if position is None:
        return f"pool {pool} granted no token within {wait:g} s"
    limit = position.violated
    why = f": {limit.name} uses {limit.used} of {limit.limit}" if position.HasField("violated") else ""
    return f"pool {pool} granted no token within {wait:g} s; its request is at position {position.position}{why}"


def _lease_of(
    env: Env, request: v1.WaitForResourceRequest, answer: v1.AllocateResourceResponse
) -> Flow[float | None]:
    """The seconds of the lease: the requested one, or the pool's default. None: the token does not lapse."""
    if request.HasField("lease"):
        return request.lease.seconds + request.lease.nanos / 1e9
    if not answer.HasField("expire_time"):
        return None
    pool = yield from call(env, "ResourceManager/GetPool", v1.GetPoolRequest(name=request.resource_namespace))
    lease = pool.pool.default_lease
    return (lease.seconds + lease.nanos / 1e9) or None


def renew_once(env: Env, request: v1.WaitForResourceRequest, timeout: float) -> Flow[v1.RenewResult]:
    """Renews a token by calls that together take at most ``timeout`` seconds."""
    renewal = v1.RenewAllocationsRequest(lines=[_line(request)], holder=request.holder)
    if request.HasField("lease"):
        renewal.lease.CopyFrom(request.lease)
    answer = yield from call(env, "ResourceManager/RenewAllocations", renewal, timeout)
    result: v1.RenewResult = answer.results[0]
    return result


def keep(
    env: Env, request: v1.WaitForResourceRequest, lease: Lease, on_lost: Callable[[str], None]
) -> Flow[None]:
    """Renews a token until it is lost; then calls ``on_lost`` with the reason."""
    while not lease.why_lost(env.now()):
        yield Pause(lease.until_renewal(env.now()))
        yield from _renew_in_time(env, request, lease)
    on_lost(lease.lost)


def _renew_in_time(env: Env, request: v1.WaitForResourceRequest, lease: Lease) -> Flow[None]:
    """Tries until the token is renewed, gone, or its lease over."""
    renewal = v1.RenewAllocationsRequest(lines=[_line(request)], holder=request.holder)
    if request.HasField("lease"):
        renewal.lease.CopyFrom(request.lease)
    is_first = True
    while not lease.why_lost(env.now()):
        sent_at = env.now()
        try:
            call_once = Call(RPCS["ResourceManager/RenewAllocations"], renewal, max(0.001, lease.try_timeout(sent_at)))
            answer = yield call_once
        except CallError as error:
            if is_first:
                LOG.warning("cannot renew token %s, trying again: %s", request.allocation_token, error)
            is_first = False
            yield Pause(lease.pause_after_failure(env.now() - sent_at, env.now()))
            continue
        if answer.results[0].outcome == v1.RenewResult.OUTCOME_RENEWED:
            lease.renewed(sent_at)
        else:
            lease.lose(f"the service says {_word(answer.results[0])}")
        return


def release(env: Env, request: v1.WaitForResourceRequest, timeout: float = RELEASE_S) -> Flow[None]:
    """Gives a token back. A token that is not held is no error; one that cannot be given back ends with its lease."""
    release_request = v1.ReleaseResourceRequest(
        resource_namespace=request.resource_namespace,
        allocation_token=request.allocation_token,
        holder=request.holder,
    )
    try:
        yield from call(env, "ResourceManager/ReleaseResource", release_request, timeout)
    except CallError as error:
        LOG.warning("token %s could not be released: %s", request.allocation_token, error)


def _line(request: v1.WaitForResourceRequest) -> v1.AllocationLine:
    return v1.AllocationLine(
        resource_namespace=request.resource_namespace, allocation_token=request.allocation_token
    )


def _word(result: v1.RenewResult) -> str:
    return v1.RenewResult.Outcome.Name(result.outcome).removeprefix("OUTCOME_")
