"""The lease of a token by this client's own clock. It looks at no clock and makes no call."""

from __future__ import annotations

from dataclasses import dataclass

PARTS = 3
"""A token is renewed after each such part of its lease, and a renewal waits for its answer at most as long."""
NO_LEASE_LOOK_S = 60.0
"""How often a token without a lease is looked at, which tells of a forced release."""
RENEW_PAUSE_S_MIN = 0.1
RENEW_PAUSE_S_MAX = 5.0


@dataclass
class Lease:
    """What this client knows of its token. Times are of a monotonic clock, in seconds.

    The lease counts from when the call that got or renewed it was sent: the service counts from later.
    """

    seconds: float | None
    """None: the token does not lapse."""
    began_at: float
    lost: str = ""
    """Why the token is lost. Empty: it is not known to be."""

    def left(self, now: float) -> float | None:
        """Seconds until the lease is over. None: it does not lapse."""
        return None if self.seconds is None else self.began_at + self.seconds - now

    def is_over(self, now: float) -> bool:
        left = self.left(now)
        return left is not None and left <= 0

    def until_renewal(self, now: float) -> float:
        """Seconds until the next renewal is due."""
        part = NO_LEASE_LOOK_S if self.seconds is None else self.seconds / PARTS
        return max(0.0, self.began_at + part - now)

    def try_timeout(self, now: float) -> float:
        """How long a renewal may wait for its answer. Not positive: the lease is over."""
        if self.seconds is None:
            return NO_LEASE_LOOK_S
        return min(self.seconds / PARTS, self.began_at + self.seconds - now)

    def pause_after_failure(self, spent: float, now: float) -> float:
        """Seconds until a renewal is tried again. A try that waited for long is followed by the next at once."""
        if self.seconds is None:
            return RENEW_PAUSE_S_MAX
        pause = min(RENEW_PAUSE_S_MAX, max(RENEW_PAUSE_S_MIN, self.seconds / 10))
        return max(0.0, min(pause - spent, self.began_at + self.seconds - now))

    def renewed(self, sent_at: float) -> None:
        self.began_at = sent_at

    def lose(self, why: str) -> None:
        """Keeps the first reason: a token that is lost stays lost."""
        self.lost = self.lost or why

    def why_lost(self, now: float) -> str:
        """Why the token may not be used any more. Empty: it is held."""
        if not self.lost and self.is_over(now):
            self.lose("its lease is over, and no renewal was answered")
        return self.lost
