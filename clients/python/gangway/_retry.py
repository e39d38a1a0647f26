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
"""How long a stream that does not work is opened again. A restart and a move of the database take less."""
STEADY_S = 60.0
"""A stream that was open for longer has worked. A connection that does not answer is closed sooner."""

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
    """The tries of one stream, which continues where it broke. Times are of a monotonic clock, in seconds.

    A stream works if it has a message, or stays open for long: one that waits for a change may be silent for hours.
    """

    def __init__(self, backoff: Backoff, also: tuple[str, ...] = ()) -> None:
        self._backoff = backoff
        self._codes = (*STREAM_RETRIED, *also)
        self._opened_at = 0.0
        self._has_worked = False
        # When the first of the tries that did not work ended. None: the last one worked.
        self._broken_at: float | None = None
        self.tries = 0
        """How many tries have not worked since the last one that did. Callers warn of the first."""

    def opened(self, now: float) -> None:
        """Takes note that the stream is opened now."""
        self._opened_at = now

    def heard(self) -> None:
        """Takes note of a message."""
        self._has_worked = True
        self._broken_at = None
        self.tries = 0
        self._backoff.reset()

    def pause_after(self, error: CallError | None, now: float) -> float | None:
        """Seconds until the stream is opened again. None: the error is the outcome.

        ``error`` is None if the stream ended without one. After UNAUTHENTICATED a stream that has worked is opened once
        more, because the file of the token may have a new one.
        """
        if now - self._opened_at > STEADY_S:
            self.heard()
        if self._broken_at is None:
            self._broken_at = now
        if error is not None:
            is_old_token = error.code == "UNAUTHENTICATED" and self._has_worked
            if error.code not in self._codes and not is_old_token:
                return None
            if now - self._broken_at > OUTAGE_S_MAX:
                return None
        self._has_worked = False
        self.tries += 1
        return self._backoff.pause(None if error is None else error.retry_after)
