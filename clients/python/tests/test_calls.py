"""When calls are repeated, and what their errors say."""

from __future__ import annotations

import unittest

from gangway import errors, v1
from gangway._flows import batches, call, create, create_all, delete, pages
from gangway._retry import BACKOFF_S_MAX, BACKOFF_S_MIN, OUTAGE_S_MAX, Backoff, StreamRetry
from scripted import Scripted


def unavailable(seconds: int | None = None) -> errors.CallError:
    status = v1.Status()
    if seconds is not None:
        info = v1.RetryInfo()
        info.retry_delay.seconds = seconds
        status.details.add().Pack(info)
    return errors.call_error("UNAVAILABLE", "away", status)


def job(name: str) -> v1.Job:
    return v1.Job(metadata=v1.Metadata(name=name))


def asked(name: str) -> v1.CreateJobRequest:
    return v1.CreateJobRequest(job=job(name))


class Calls(unittest.TestCase):
    def test_a_call_is_repeated_as_it_is_until_it_is_answered(self) -> None:
        service = Scripted(unavailable(), errors.call_error("DEADLINE_EXCEEDED", ""), v1.GetJobResponse(job=job("a")))
        with self.assertLogs("gangway"):
            answer = service.run(call(service.env, "JobService/GetJob", v1.GetJobRequest(name="a")))
        self.assertEqual(answer.job.metadata.name, "a")
        self.assertEqual([one.request for one in service.calls], [v1.GetJobRequest(name="a")] * 3)

    def test_the_service_says_when_to_repeat_a_call(self) -> None:
        service = Scripted(unavailable(7), v1.GetJobResponse())
        with self.assertLogs("gangway"):
            service.run(call(service.env, "JobService/GetJob", v1.GetJobRequest()))
        self.assertTrue(7 <= service.pauses[0] <= 9)

    def test_a_call_ends_with_its_last_error_when_its_time_is_over(self) -> None:
        service = Scripted(*[unavailable()] * 100)
        with self.assertRaises(errors.Unavailable), self.assertLogs("gangway"):
            service.run(call(service.env, "JobService/GetJob", v1.GetJobRequest(), 20.0))
        self.assertLessEqual(sum(service.pauses), 20.0)

    def test_other_errors_are_not_repeated(self) -> None:
        for code in ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "ALREADY_EXISTS", "INTERNAL", "ABORTED"):
            service = Scripted(errors.call_error(code, ""))
            with self.assertRaises(errors.CallError):
                service.run(call(service.env, "JobService/GetJob", v1.GetJobRequest()))
            self.assertEqual(len(service.calls), 1)

    def test_a_create_has_a_request_id_that_its_repetition_keeps(self) -> None:
        service = Scripted(unavailable(), v1.CreateJobResponse(job=job("a")))
        options = {"request_id": None, "validate_only": False, "strict": False, "timeout": None}
        with self.assertLogs("gangway"):
            service.run(create(service.env, asked("a"), **options))  # type: ignore[arg-type]
        first, second = (one.request.request_id for one in service.calls)
        self.assertEqual(first, second)
        self.assertGreaterEqual(len(first), 32)

    def test_requests_of_the_caller_stay_as_they_are_and_each_job_of_a_batch_has_a_request_id(self) -> None:
        given = v1.BatchCreateJobsRequest(requests=[v1.CreateJobRequest(job=job("a"), request_id="mine")])
        given.requests.add()
        service = Scripted(v1.BatchCreateJobsResponse())
        service.run(call(service.env, "JobService/BatchCreateJobs", given))
        mine, own = service.calls[0].request.requests
        self.assertEqual((mine.request_id, len(own.request_id)), ("mine", 32))
        self.assertEqual(given.requests[1].request_id, "")

    def test_a_repeated_delete_that_finds_nothing_has_succeeded(self) -> None:
        service = Scripted(unavailable(), errors.call_error("NOT_FOUND", ""))
        service.run(delete(service.env, "default", "a", None))
        service = Scripted(errors.call_error("NOT_FOUND", ""))
        with self.assertRaises(errors.NotFound):
            service.run(delete(service.env, "default", "a", None))

    def test_a_list_is_read_page_by_page(self) -> None:
        service = Scripted(
            v1.ListJobsResponse(jobs=[job("a"), job("b")], next_page_token="2"), v1.ListJobsResponse(jobs=[job("c")])
        )
        service.run(pages(service.env, "JobService/ListJobs", v1.ListJobsRequest(), "jobs", None))
        self.assertEqual([one.metadata.name for one in service.emitted], ["a", "b", "c"])
        self.assertEqual([one.request.page_token for one in service.calls], ["", "2"])

    def test_a_batch_is_cut_and_each_job_has_its_outcome(self) -> None:
        requests = [v1.CreateJobRequest(job=job(f"j{at}")) for at in range(2001)]
        self.assertEqual([len(batch) for batch in batches(requests)], [1000, 1000, 1])
        large = v1.CreateJobRequest(request_id="x" * 5_000_000)
        self.assertEqual([len(batch) for batch in batches([large, large])], [1, 1])
        refused = v1.Status(code=6, message="taken")
        answer = v1.BatchCreateJobsResponse(
            results=[
                v1.BatchCreateJobsResult(response=v1.CreateJobResponse(job=job("a"))),
                v1.BatchCreateJobsResult(error=refused),
            ]
        )
        service = Scripted(answer)
        made, error = service.run(
            create_all(service.env, [asked("a"), asked("b")], request_ids=None, strict=False, timeout=None)
        )
        self.assertEqual(made.metadata.name, "a")
        self.assertIsInstance(error, errors.AlreadyExists)


class Retries(unittest.TestCase):
    def test_pauses_double_to_a_bound(self) -> None:
        backoff = Backoff(lambda: 1.0)
        pauses = [backoff.pause(None) for _ in range(10)]
        self.assertEqual(pauses[:4], [0.1, 0.2, 0.4, 0.8])
        self.assertEqual(max(pauses), BACKOFF_S_MAX)
        self.assertLessEqual(Backoff(lambda: 0.0).pause(10_000.0), 60.0)

    def test_a_stream_gives_up_after_a_long_outage_and_not_before(self) -> None:
        retry = StreamRetry(Backoff(lambda: 1.0))
        for at in (0.0, 300.0, OUTAGE_S_MAX):
            retry.opened(at)
            self.assertIsNotNone(retry.pause_after(unavailable(), at))
        retry.opened(OUTAGE_S_MAX)
        self.assertIsNone(retry.pause_after(unavailable(), OUTAGE_S_MAX + 1))
        retry.heard()
        self.assertIsNotNone(retry.pause_after(unavailable(), OUTAGE_S_MAX + 2))

    def test_a_stream_that_was_silent_for_long_has_worked(self) -> None:
        retry = StreamRetry(Backoff(lambda: 1.0))
        retry.opened(0.0)
        self.assertEqual(retry.pause_after(unavailable(), 10 * OUTAGE_S_MAX), BACKOFF_S_MIN)
        retry.opened(10 * OUTAGE_S_MAX)
        self.assertEqual(retry.pause_after(None, 20 * OUTAGE_S_MAX), BACKOFF_S_MIN)

    def test_a_stream_that_has_worked_tries_a_new_token_once(self) -> None:
        old = errors.call_error("UNAUTHENTICATED", "")
        retry = StreamRetry(Backoff(lambda: 1.0))
        self.assertIsNone(retry.pause_after(old, 0.0))
        retry.heard()
        self.assertIsNotNone(retry.pause_after(old, 0.0))
        self.assertIsNone(retry.pause_after(old, 0.0))


class Errors(unittest.TestCase):
    def test_an_error_has_all_details(self) -> None:
        status = v1.Status()
        info = v1.ErrorInfo(reason="JOB_NOT_FOUND", metadata={"name": "a"})
        bad = v1.BadRequest(field_violations=[v1.BadRequest.FieldViolation(field="job.name", description="is wrong")])
        failure = v1.PreconditionFailure(
            violations=[v1.PreconditionFailure.Violation(type="T", subject="s", description="d")]
        )
        retry = v1.RetryInfo()
        retry.retry_delay.FromMilliseconds(1500)
        for detail in (info, bad, failure, retry):
            status.details.add().Pack(detail)
        error = errors.call_error("FAILED_PRECONDITION", "no", status)
        self.assertIsInstance(error, errors.FailedPrecondition)
        self.assertEqual((error.reason, error.metadata, error.retry_after), ("JOB_NOT_FOUND", {"name": "a"}, 1.5))
        self.assertEqual(error.fields, (errors.FieldError("job.name", "is wrong"),))
        self.assertEqual(error.obstacles, (errors.Obstacle("T", "s", "d"),))

    def test_an_unknown_code_is_a_plain_error(self) -> None:
        self.assertIs(type(errors.call_error("DATA_LOSS", "")), errors.CallError)


if __name__ == "__main__":
    unittest.main()
