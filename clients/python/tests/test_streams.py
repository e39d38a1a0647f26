"""Watches, waits and logs that continue after a lost connection."""

from __future__ import annotations

import unittest
from typing import Any

from gangway import errors, v1
from gangway._flows import JobEvent, logs, wait, watch
from scripted import Scripted

W = v1.WatchJobsResponse
LOST = errors.call_error("UNAVAILABLE", "the connection was lost")


def job(phase: v1.JobPhase, uid: str = "u1", name: str = "a") -> v1.Job:
    made = v1.Job(metadata=v1.Metadata(namespace="default", name=name, uid=uid))
    made.status.phase = phase
    return made


def added(cursor: str, one: v1.Job | None = None) -> W:
    return W(type=W.TYPE_ADDED, job=one or job(v1.JOB_PHASE_WAITING), cursor=cursor)


def changed(cursor: str, one: v1.Job) -> W:
    return W(type=W.TYPE_MODIFIED, job=one, cursor=cursor)


def deleted(cursor: str) -> W:
    return W(type=W.TYPE_DELETED, job=job(v1.JOB_PHASE_RUNNING), cursor=cursor)


BOOKMARK = W(type=W.TYPE_BOOKMARK, cursor="c0")
GAP = W(type=W.TYPE_GAP)


class Watches(unittest.TestCase):
    def watched(self, *streams: list[Any], cursor: str = "") -> tuple[Scripted, list[tuple[str, str]]]:
        end = changed("end", job(v1.JOB_PHASE_SUCCEEDED, name="end"))
        service = Scripted(*streams, [end])
        flow = watch(service.env, v1.JobFilter(), cursor=cursor, view=v1.JOB_VIEW_BASIC, timeout=None)

        def is_end(event: JobEvent) -> bool:
            return event.job is not None and event.job.metadata.name == "end"

        service.run(flow, stop=is_end)
        return service, [(one.type, one.cursor) for one in service.emitted[:-1]]

    def cursors(self, service: Scripted) -> list[str]:
        return [one.request.cursor for one in service.calls]

    def test_a_watch_continues_from_its_last_cursor(self) -> None:
        running = job(v1.JOB_PHASE_RUNNING)
        service, events = self.watched([added(""), BOOKMARK, changed("c1", running), LOST], [LOST])
        self.assertEqual(events, [("ADDED", ""), ("BOOKMARK", "c0"), ("MODIFIED", "c1")])
        self.assertEqual(self.cursors(service), ["", "c1", "c1"])

    def test_a_watch_that_breaks_while_it_lists_says_gap_and_lists_again(self) -> None:
        service, events = self.watched([added(""), LOST], [added(""), BOOKMARK])
        self.assertEqual([kind for kind, _ in events], ["ADDED", "GAP", "ADDED", "BOOKMARK"])
        self.assertEqual(self.cursors(service), ["", "", "c0"])

    def test_a_gap_of_the_service_is_passed_on_and_its_listing_is_repeated_if_it_breaks(self) -> None:
        service, events = self.watched([GAP, added("x"), LOST], [GAP, added("x"), BOOKMARK], cursor="old")
        self.assertEqual([kind for kind, _ in events], ["GAP", "ADDED", "GAP", "ADDED", "BOOKMARK"])
        self.assertEqual(self.cursors(service), ["old", "old", "c0"])

    def test_a_reader_that_was_too_slow_continues_where_the_service_says(self) -> None:
        slow = errors.call_error("RESOURCE_EXHAUSTED", "slow")
        slow.reason, slow.metadata = "WATCH_TOO_SLOW", {"cursor": "c9"}
        service, _ = self.watched([BOOKMARK, slow])
        self.assertEqual(self.cursors(service), ["", "c9"])

    def test_an_error_that_no_retry_can_help_ends_the_watch(self) -> None:
        with self.assertRaises(errors.InvalidArgument):
            self.watched([errors.call_error("INVALID_ARGUMENT", "cursor")])


class Waits(unittest.TestCase):
    def waited(self, *streams: list[Any], of: v1.Job | str = "a", until: str = "ended") -> v1.Job:
        service = Scripted(*streams)
        result: v1.Job = service.run(wait(service.env, of, "default", until=until, timeout=60.0))
        return result

    def test_a_wait_ends_with_the_job_also_after_a_lost_connection(self) -> None:
        done = job(v1.JOB_PHASE_SUCCEEDED)
        self.assertEqual(self.waited([added(""), BOOKMARK, LOST], [changed("c1", done)]), done)
        self.assertEqual(self.waited([added("", done)]), done)
        running = job(v1.JOB_PHASE_RUNNING)
        self.assertEqual(self.waited([added("", running)], until="running"), running)

    def test_a_failed_job_says_why(self) -> None:
        failed = job(v1.JOB_PHASE_FAILED)
        failed.status.failure.code, failed.status.failure.container = "ExitCode", "pytorch"
        failed.status.failure.exit_code = 3
        with self.assertRaises(errors.JobFailed) as caught:
            self.waited([added("", failed)])
        error = caught.exception
        self.assertEqual((error.code, error.exit_code, error.container), ("ExitCode", 3, "pytorch"))
        failed.status.failure.ClearField("exit_code")
        self.assertIsNone(errors.JobFailed(failed).exit_code)
        failed.status.attempts.last_failure.container, failed.status.attempts.last_failure.exit_code = "pytorch", 4
        self.assertEqual(errors.JobFailed(failed).exit_code, 4)
        with self.assertRaises(errors.JobCancelled):
            self.waited([added("", job(v1.JOB_PHASE_CANCELLED))])

    def test_a_job_that_is_gone_is_told_of(self) -> None:
        with self.assertRaises(errors.NotFound):
            self.waited([BOOKMARK])
        with self.assertRaises(errors.JobGone):
            self.waited([added(""), BOOKMARK, deleted("c1")])
        with self.assertRaises(errors.JobGone):
            self.waited([added(""), BOOKMARK, GAP, BOOKMARK])
        with self.assertRaises(errors.JobGone):
            self.waited([added("", job(v1.JOB_PHASE_SUCCEEDED, uid="u2")), BOOKMARK], of=job(v1.JOB_PHASE_WAITING))

    def test_the_timeout_says_where_the_job_is(self) -> None:
        waiting = job(v1.JOB_PHASE_WAITING)
        waiting.status.waiting.reason = "QuotaExhausted"
        streams = [[added("", waiting), BOOKMARK, LOST]] + [[LOST]] * 100
        with self.assertRaises(errors.WaitTimeout) as caught:
            self.waited(*streams)
        self.assertIsInstance(caught.exception, TimeoutError)
        self.assertIn("WAITING: QuotaExhausted", str(caught.exception))


class Logs(unittest.TestCase):
    def lines(self, *streams: list[Any], follow: bool = True, tail: int | None = None) -> tuple[Scripted, list[str]]:
        service = Scripted(*streams)
        request = v1.StreamJobLogsRequest(name="a", follow=follow)
        if tail is not None:
            request.tail_lines = tail
        service.run(logs(service.env, request, timestamps=False))
        return service, [one.text for one in service.emitted]

    def message(self, *lines: tuple[str, int]) -> v1.StreamJobLogsResponse:
        made = v1.StreamJobLogsResponse()
        for text, nanos in lines:
            line = made.lines.add(replica="Worker/0", container="main", text=text)
            line.time.seconds, line.time.nanos = 5, nanos
        return made

    def test_no_line_comes_twice_or_is_missed_after_a_lost_connection(self) -> None:
        first = self.message(("a", 1), ("b", 2), ("c", 2))
        again = self.message(("a", 1), ("b", 2), ("c", 2), ("d", 2), ("e", 3))
        _, texts = self.lines([first, LOST], [again])
        self.assertEqual(texts, ["a", "b", "c", "d", "e"])

    def test_the_last_lines_are_asked_for_only_once(self) -> None:
        service = Scripted([self.message(("a", 1)), LOST], [self.message(("a", 1), ("b", 2))])
        request = v1.StreamJobLogsRequest(name="a", follow=True, tail_lines=1)
        service.run(logs(service.env, request, timestamps=False))
        self.assertEqual([one.request.HasField("tail_lines") for one in service.calls], [True, False])

    def test_kept_lines_come_once_and_are_named(self) -> None:
        kept = self.message(("x", 1))
        kept.kept.pod = "a-worker-0"
        service, texts = self.lines([kept, LOST], [kept, self.message(("y", 2))])
        self.assertEqual([(one.text, one.kept) for one in service.emitted], [("x", True), ("y", False)])

    def test_a_log_that_does_not_follow_fails_once_it_has_begun(self) -> None:
        with self.assertRaises(errors.Unavailable):
            self.lines([self.message(("a", 1)), LOST], follow=False)
        _, texts = self.lines([LOST], [self.message(("a", 1))], follow=False)
        self.assertEqual(texts, ["a"])


if __name__ == "__main__":
    unittest.main()
