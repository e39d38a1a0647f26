"""Tokens: they are taken, kept by this client's clock, lost and given back."""

from __future__ import annotations

import unittest
from typing import Any

from gangway import errors, v1
from gangway._arguments import token_request
from gangway._lease import Lease
from gangway._tokens import Grant, acquire, keep
from scripted import Scripted

AWAY = errors.call_error("UNAVAILABLE", "away")
R = v1.RenewResult


def request(lease: float | None = 12.0, token: str | None = "t") -> v1.WaitForResourceRequest:
    return token_request(
        "ex:w", amount=1, lease=lease, token=token, project="", namespace="", queue="", holder="", priority=0
    )


def granted(fence: int, held: bool = False, lapses: bool = True) -> v1.AllocateResourceResponse:
    answer = v1.AllocateResourceResponse(status=v1.ALLOCATION_STATUS_GRANTED, fence=fence, held=held)
    if lapses:
        answer.expire_time.seconds = 1
    return answer


def in_line(position: int) -> v1.WaitForResourceResponse:
    return v1.WaitForResourceResponse(position=v1.LinePosition(position=position))


def renewed(outcome: Any = R.OUTCOME_RENEWED, fence: int = 7) -> v1.RenewAllocationsResponse:
    return v1.RenewAllocationsResponse(results=[R(outcome=outcome, fence=fence)])


def methods(service: Scripted) -> list[str]:
    return [one.rpc.name for one in service.calls]


class Acquiring(unittest.TestCase):
    def acquired(self, service: Scripted, *, wait: float | None, lease: float | None = 12.0) -> Grant:
        grant: Grant = service.run(acquire(service.env, request(lease), wait=wait))
        return grant

    def test_a_token_that_is_free_is_granted_at_once(self) -> None:
        service = Scripted(granted(7))
        grant = self.acquired(service, wait=0)
        self.assertEqual((grant.fence, grant.lease.seconds, methods(service)), (7, 12.0, ["AllocateResource"]))

    def test_the_line_is_joined_again_and_the_lease_counts_from_a_renewal(self) -> None:
        service = Scripted([in_line(2), AWAY], [in_line(1), v1.WaitForResourceResponse(granted=granted(7))], renewed())
        grant = self.acquired(service, wait=None)
        self.assertEqual(methods(service), ["WaitForResource", "WaitForResource", "RenewAllocations"])
        self.assertEqual(grant.lease.began_at, service.seconds)

    def test_a_grant_that_lapsed_before_its_answer_came_is_asked_for_again(self) -> None:
        first, second = granted(7, held=True), granted(8)
        service = Scripted(first, renewed(R.OUTCOME_LOST), second)
        self.assertEqual(self.acquired(service, wait=0).fence, 8)

    def test_a_service_that_goes_away_after_the_grant_is_asked_again(self) -> None:
        grant = v1.WaitForResourceResponse(granted=granted(7))
        # The renewal has half of the lease: six tries with their pauses.
        service = Scripted([grant], *[AWAY] * 6, [grant], renewed())
        self.assertEqual(self.acquired(service, wait=None).fence, 7)
        self.assertEqual(methods(service).count("WaitForResource"), 2)

    def test_a_token_of_another_holder_is_denied(self) -> None:
        with self.assertRaises(errors.PermissionDenied):
            self.acquired(Scripted(granted(7, held=True), renewed(R.OUTCOME_OTHER_HOLDER)), wait=0)

    def test_a_pool_that_is_used_up_refuses_or_times_out(self) -> None:
        full = v1.AllocateResourceResponse(status=v1.ALLOCATION_STATUS_EXHAUSTED)
        with self.assertRaises(errors.TokenRefused) as caught:
            self.acquired(Scripted(full), wait=0)
        self.assertEqual(caught.exception.status, "EXHAUSTED")
        # Each message ends the backoff, so that the line is joined again after 0.1 s: six times in 0.5 s.
        service = Scripted(*[[in_line(3), AWAY]] * 6, v1.ReleaseResourceResponse())
        with self.assertRaises(errors.WaitTimeout) as late:
            self.acquired(service, wait=0.5)
        self.assertIn("position 3", str(late.exception))
        self.assertEqual(methods(service)[-1], "ReleaseResource")

    def test_the_lease_is_that_of_the_pool_if_none_is_named(self) -> None:
        pool = v1.GetPoolResponse()
        pool.pool.default_lease.seconds = 600
        self.assertEqual(self.acquired(Scripted(granted(7), pool), wait=0, lease=None).lease.seconds, 600.0)
        self.assertIsNone(self.acquired(Scripted(granted(7, lapses=False)), wait=0, lease=None).lease.seconds)

    def test_a_token_without_a_name_gets_one(self) -> None:
        self.assertNotEqual(request(token=None).allocation_token, request(token=None).allocation_token)
        with self.assertRaises(ValueError):
            request(lease=0.5)


class Keeping(unittest.TestCase):
    def kept(self, service: Scripted, lease: Lease) -> list[str]:
        told: list[str] = []
        service.run(keep(service.env, request(lease.seconds), lease, told.append))
        return told

    def test_a_token_is_renewed_at_a_third_of_its_lease(self) -> None:
        service = Scripted(renewed(), renewed(), renewed(R.OUTCOME_LOST))
        told = self.kept(service, Lease(12.0, service.seconds))
        self.assertEqual(service.pauses, [4.0, 4.0, 4.0])
        self.assertEqual(told, ["the service says LOST"])

    def test_a_lease_that_no_renewal_answers_is_over_by_the_own_clock(self) -> None:
        service = Scripted(*[AWAY] * 50)
        began_at = service.seconds
        told = self.kept(service, Lease(12.0, began_at))
        self.assertEqual(told, ["its lease is over, and no renewal was answered"])
        self.assertAlmostEqual(service.seconds - began_at, 12.0)

    def test_an_outage_shorter_than_the_lease_loses_nothing(self) -> None:
        service = Scripted(AWAY, AWAY, renewed(), renewed(R.OUTCOME_LOST))
        lease = Lease(12.0, service.seconds)
        self.kept(service, lease)
        self.assertEqual(lease.began_at, 1000.0 + 4.0 + 1.2 + 1.2)

    def test_a_token_without_a_lease_is_looked_at_now_and_then(self) -> None:
        service = Scripted(AWAY, renewed(), renewed(R.OUTCOME_LOST))
        lease = Lease(None, service.seconds)
        self.assertEqual(self.kept(service, lease), ["the service says LOST"])
        self.assertEqual(service.pauses[0], 60.0)

    def test_a_lost_token_stays_lost(self) -> None:
        lease = Lease(12.0, 0.0)
        self.assertEqual(lease.why_lost(11.0), "")
        self.assertNotEqual(lease.why_lost(12.0), "")
        lease.renewed(12.0)
        self.assertNotEqual(lease.why_lost(12.0), "")


if __name__ == "__main__":
    unittest.main()
