"""Decides whether and when calls are repeated. It looks at no clock and makes no call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from .errors import CallError

BACKOFF_S_MIN = 0.1
BACKOFF_S_MAX = 5.0
RETRY_AFTER_S_MAX = 60.0
"""The service asks for less. A proxy may ask for more."""
CALL_S = 60.0
"""How long a call may take with all its tries, unless its caller says otherwise."""
TRY_S_MAX = 30.0
"""How long one try may take: a process that hangs does not answer, and another one may."""
OUTAGE_S_MAX = 600.0
"""How long a stream is repeated without one message in between. A restart and a move of the database take less."""

RETRIED = ("UNAVAILABLE", "DEADLINE_EXCEEDED")
"""Codes of calls that change nothing twice when they are repeated as they are."""
STREAM_RETRIED = (*RETRIED, "ABORTED")
"""Codes after which a stream is opened again."""


class Backoff:
    """Pauses that double, with jitter so that callers of one outage do not come back together."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._next = BACKOFF_S_MIN

    def reset(self) -> None:
        self._next = BACKOFF_S_MIN

    def pause(self, retry_after: float | None) -> float:
        """Seconds to wait now. At least ``retry_after``, the time of the service's RetryInfo."""
        jittered = self._next * (0.5 + 0.5 * self._random())
        self._next = min(BACKOFF_S_MAX, 2 * self._next)
        if retry_after is None:
            return jittered
        return min(RETRY_AFTER_S_MAX, retry_after) * (1 + 0.25 * self._random()) if retry_after > 0 else jittered


@dataclass
class CallRetry:
    """The tries of one call with one answer. Times are of a monotonic clock, in seconds."""

    ends_at: float
    backoff: Backoff

    def try_timeout(self, now: float) -> float:
        """How long the next try may take."""
        return max(0.001, min(TRY_S_MAX, self.ends_at - now))

    def pause_after(self, error: CallError, now: float) -> float | None:
        """Seconds until the next try. None: the error is the outcome."""
        if error.code not in RETRIED:
            return None
        pause = self.backoff.pause(error.retry_after)
        return pause if now + pause < self.ends_at else None


class StreamRetry:
    """The tries of one stream, which continues where it broke. Times are of a monotonic clock, in seconds."""

    def __init__(self, backoff: Backoff, now: float, also: tuple[str, ...] = ()) -> None:
        self._backoff = backoff
        self._codes = (*STREAM_RETRIED, *also)
        self._heard_at = now
        self._has_worked = False

    def heard(self, now: float) -> None:
        """Takes note of a message."""
        self._heard_at = now
        self._has_worked = True
        self._backoff.reset()

    def pause_after(self, error: CallError | None, now: float) -> float | None:
        """Seconds until the stream is opened again. None: the error is the outcome.

        ``error`` is None if the stream ended without one. After UNAUTHENTICATED a stream that has worked is opened once
        more, because the file of the token may have a new one.
        """
        if error is not None:
            is_old_token = error.code == "UNAUTHENTICATED" and self._has_worked
            if error.code not in self._codes and not is_old_token:
                return None
            if now - self._heard_at > OUTAGE_S_MAX:
                return None
        self._has_worked = False
        return self._backoff.pause(None if error is None else error.retry_after)
