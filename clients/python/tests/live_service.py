"""The client against a real service: its jobs and tokens, through lost connections and a restart."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import unittest
import unittest.mock
from pathlib import Path
from typing import Any

import gangway
from asking import IMAGE, Heard, ask, in_thread, line_address, until
from gangway import Client, _lease, torchrun, v1
from gangway.aio import AsyncClient

POOL = "ex:python"


def job(name: str, run: str = "100ms", policy: str = "OnFailure", **more: str) -> v1.Job:
    """A job of two nodes on the simulated clusters, which run no program."""
    simulated = {"run": run, "log-every": "100ms", "pull": "0ms", "start": "0ms", "termination-grace": "0ms", **more}
    annotations = {f"sim.gangway.dev/{key.replace('_', '-')}": value for key, value in simulated.items()}
    return torchrun(name, IMAGE, ["train.py"], nodes=2, cpu=1, restart_policy=policy, pod_annotations=annotations)


class Live(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client()
        self.line = Client(line_address())
        self.addCleanup(self.client.close)
        self.addCleanup(self.line.close)
        quota = v1.RegisterResourceQuotaRequest(resource_namespace=POOL, quota=2)
        self.client.resources.RegisterResourceQuota(quota)


class Jobs(Live):
    def test_a_job_is_submitted_logged_and_waited_for(self) -> None:
        made = self.client.submit(job("python-ends"), request_id="python-ends")
        again = self.client.submit(job("python-ends"), request_id="python-ends")
        self.assertEqual(made.metadata.uid, again.metadata.uid)
        # The log waits for pods, and ends with the job.
        lines = list(self.client.logs(made, follow=True, timestamps=True))
        self.assertEqual({line.replica for line in lines}, {"Master/0", "Worker/0"})
        self.assertTrue(all(line.time is not None for line in lines))
        done = self.client.wait(made)
        self.assertEqual(done.status.phase, v1.JOB_PHASE_SUCCEEDED)
        self.assertIn("succeeded", self.client.explain(made).summary)
        self.assertEqual(len(list(self.client.pods(made))), 2)
        self.assertTrue(any(event.reason for event in self.client.events(made)))
        self.client.delete(made)

    def test_a_failed_job_says_why(self) -> None:
        made = self.client.submit(job("python-fails", policy="Never", exit_code="3"))
        with self.assertRaises(gangway.JobFailed) as caught:
            self.client.wait(made)
        self.assertEqual((caught.exception.exit_code, caught.exception.container), (3, "pytorch"))
        self.assertFalse(caught.exception.is_system)

    def test_a_job_is_suspended_resumed_and_cancelled(self) -> None:
        made = self.client.submit(job("python-suspended", "forever"))
        self.client.wait(made, until="running")
        self.client.suspend(made)
        with self.assertRaises(gangway.WaitTimeout):
            self.client.wait("default/python-suspended", timeout=0.2)
        self.assertTrue(self.client.resume("python-suspended").metadata.uid)
        self.client.cancel(made, reason="enough")
        with self.assertRaises(gangway.JobCancelled):
            self.client.wait(made)

    def test_a_manifest_that_the_service_reads_is_sent_as_it_is(self) -> None:
        spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": IMAGE}]}
        document: dict[str, Any] = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "python-batch"},
            "spec": {"completions": 2, "parallelism": 2, "template": {"spec": spec}},
        }
        made = self.client.submit(document, validate_only=True)
        self.assertEqual((made.spec.kind, made.spec.replica_specs["Worker"].replicas), ("Job.v1.batch", 2))
        (both,) = self.client.submit_all([document])
        self.assertIsInstance(both, v1.Job)
        self.assertTrue(self.client.simulate(document).summary)
        self.client.delete("python-batch")
        document["spec"]["backofLimit"] = 1
        with self.assertRaises(gangway.InvalidArgument) as caught:
            self.client.submit(document)
        self.assertIn("manifest.spec.backofLimit", str(caught.exception))

    def test_manifests_are_taken_as_text_file_and_object(self) -> None:
        container = {"name": "main", "image": IMAGE}
        document: dict[str, Any] = {
            "apiVersion": "gangway.dev/v1",
            "kind": "Job",
            "metadata": {"name": "python-object"},
            "spec": {"replicaSpecs": {"Worker": {"template": {"spec": {"containers": [container]}}}}},
        }
        self.assertEqual(self.client.submit(document, validate_only=True).metadata.name, "python-object")
        self.assertNotEqual(self.client.simulate(document).verdict, v1.VERDICT_UNSPECIFIED)
        text = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: python-yaml, annotations: {gangway.dev/priority: "7"}}
spec:
  pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: i}]}}}}
"""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "job.yaml")
            path.write_text(text, encoding="utf-8")
            sources: list[gangway.Manifest] = [text, path]
            for source in sources:
                self.assertEqual(self.client.submit(source, validate_only=True).spec.priority, 7)

    def test_a_batch_has_an_outcome_for_each_job_and_a_list_has_pages(self) -> None:
        jobs = [job(f"python-batch-{at}", "forever") for at in range(5)] + [job("Wrong")]
        for one in jobs:
            one.spec.run_policy.suspend = True
            one.metadata.labels["batch"] = "python"
        outcomes = self.client.submit_all(jobs)
        self.assertEqual([isinstance(one, v1.Job) for one in outcomes], [True] * 5 + [False])
        self.assertIsInstance(outcomes[5], gangway.InvalidArgument)
        request = v1.ListJobsRequest(filter=v1.JobFilter(labels={"batch": "python"}), page_size=2)
        self.assertEqual(len(self.client.jobs.ListJobs(request).jobs), 2)
        with unittest.mock.patch("gangway._flows.PAGE_SIZE", 2):
            listed = [one.metadata.name for one in self.client.list(labels={"batch": "python"}, order_by="name")]
        self.assertEqual(listed, [f"python-batch-{at}" for at in range(5)])

    def test_errors_have_classes_reasons_and_fields(self) -> None:
        with self.assertRaises(gangway.NotFound) as missing:
            self.client.get("python-missing")
        self.assertEqual(missing.exception.reason, "JOB_NOT_FOUND")
        with self.assertRaises(gangway.InvalidArgument) as wrong:
            self.client.submit(job("Wrong"))
        self.assertEqual([one.field for one in wrong.exception.fields], ["job.metadata.name"])
        self.client.submit(job("python-taken", "forever"))
        with self.assertRaises(gangway.AlreadyExists) as taken:
            self.client.submit(job("python-taken", "2s"))
        self.assertEqual(taken.exception.reason, "JOB_NAME_TAKEN")
        self.client.delete("python-taken")
        with self.assertRaises((gangway.Unavailable, gangway.DeadlineExceeded)), Heard():
            Client("127.0.0.1:1").jobs.ListKinds(v1.ListKindsRequest(), timeout=0.3)


    def test_an_address_that_does_not_answer_is_passed(self) -> None:
        with Heard(), Client(f"127.0.0.1:1,{self.client.addresses[0]}") as client:
            self.assertEqual(client.submit(job("python-address"), validate_only=True).metadata.name, "python-address")
            client.close()
            with self.assertRaisesRegex(ValueError, "closed"):
                client.get("python-address")


class Tokens(Live):
    def test_a_pool_that_is_used_up_refuses_or_lets_wait(self) -> None:
        with self.client.token(POOL, amount=2, lease=600) as held:
            held.check()
            self.assertGreater(held.fence, 0)
            with self.assertRaises(gangway.TokenRefused) as refused, self.client.token(POOL, wait=0):
                pass
            self.assertEqual((refused.exception.status, refused.exception.violated.limit), ("EXHAUSTED", 2))
            with self.assertRaises(gangway.WaitTimeout), self.client.token(POOL, wait=0.2, lease=600):
                pass
            with self.assertRaises(gangway.FailedPrecondition) as never, self.client.token(POOL, amount=3):
                pass
            self.assertEqual(never.exception.reason, "NEVER_FITS")

            def next_one() -> int:
                with self.client.token(POOL, lease=600) as mine:
                    return mine.fence

            later = in_thread(next_one)
            pool = v1.GetPoolRequest(name=POOL)
            until("the second one waits", lambda: self.client.resources.GetPool(pool).pool.waiters == 1)
        self.assertGreater(later(), held.fence)
        self.assertEqual(self.client.resources.GetPool(pool).pool.used, 0)

    def test_a_token_outlives_a_lost_connection_and_a_forced_release_is_noticed(self) -> None:
        lost: list[str] = []
        # A long lease, of which a token is renewed each second, and a failed renewal repeated soon.
        soon = unittest.mock.patch.multiple(_lease, PARTS=600, RENEW_PAUSE_S_MAX=0.1)
        with soon, Heard() as heard:
            with self.assertRaisesRegex(gangway.TokenLost, "LOST"):
                with self.line.token(POOL, lease=600, on_lost=lost.append) as held:
                    ask("cut")
                    heard.until("cannot renew token")
                    before = held.left
                    ask("mend")
                    until("the token is renewed", lambda: (held.left or 0.0) > (before or 0.0))
                    held.check()
                    self.client.resources.ForceRelease(
                        v1.ForceReleaseRequest(resource_namespace=POOL, allocation_token=held.token, reason="a test")
                    )
                    until("the loss is told of", lambda: lost)
                    with self.assertRaises(gangway.TokenLost):
                        held.check()


class Faults(Live):
    def test_a_create_whose_connection_is_cut_creates_one_job(self) -> None:
        ask("cut")
        with Heard() as heard:
            made = in_thread(lambda: self.line.submit(job("python-cut", "forever")))
            heard.until("trying again")
            ask("mend")
            self.assertEqual(made().metadata.name, "python-cut")
        self.client.delete("python-cut")

    def test_logs_and_watches_continue_after_a_lost_connection(self) -> None:
        made = self.client.submit(job("python-follows", "forever"))
        self.client.wait(made, until="running")
        texts: list[str] = []
        events: list[gangway.JobEvent] = []

        def follow() -> None:
            for line in self.line.logs(made, follow=True, replica="Worker/0"):
                texts.append(line.text)

        def watch() -> None:
            for event in self.line.watch(names=["python-follows"]):
                events.append(event)
                if event.job is not None and event.job.status.phase == v1.JOB_PHASE_CANCELLED:
                    return

        with Heard() as heard:
            following, watching = in_thread(follow), in_thread(watch)
            until("both have begun", lambda: "step 3" in texts and any(one.type == "BOOKMARK" for one in events))
            ask("cut")
            heard.until("StreamJobLogs: UNAVAILABLE")
            heard.until("WatchJobs: UNAVAILABLE")
            ask("mend")
            seen = len(texts)
            until("the log goes on", lambda: len(texts) > seen + 2)
            self.client.cancel(made)
            watching()
            following()
        steps = [text for text in texts if text.startswith("step ")]
        self.assertEqual(steps, [f"step {at + 1}" for at in range(len(steps))])
        self.assertEqual([one.type for one in events if one.type in ("ADDED", "GAP")], ["ADDED"])
        versions = [int(one.job.metadata.resource_version) for one in events if one.job is not None]
        self.assertEqual(versions, sorted(set(versions)), "each change comes once")

    def test_waits_and_watches_outlive_a_restart_of_the_service(self) -> None:
        made = self.client.submit(job("python-restart", "forever"))
        events: list[gangway.JobEvent] = []
        listed = threading.Event()

        def watch() -> None:
            for event in self.client.watch(names=["python-restart"]):
                events.append(event)
                if event.type == "BOOKMARK":
                    listed.set()
                if event.job is not None and event.job.status.phase == v1.JOB_PHASE_CANCELLED:
                    return

        with Heard() as heard, self.client.token(POOL, lease=600) as held:
            waiting, watching = in_thread(lambda: self.client.wait(made)), in_thread(watch)
            until("the watch has begun", listed.is_set)
            ask("kill")
            getting = in_thread(lambda: self.client.get(made))
            heard.until("JobService/GetJob: UNAVAILABLE")
            ask("start")
            self.assertEqual(getting().metadata.uid, made.metadata.uid)
            held.check()
            self.client.cancel(made)
            with self.assertRaises(gangway.JobCancelled):
                waiting()
            watching()
        self.assertEqual([one.type for one in events if one.type in ("ADDED", "GAP")], ["ADDED"])


class Asynchronous(unittest.IsolatedAsyncioTestCase):
    async def test_the_asynchronous_client_does_the_same(self) -> None:
        async with AsyncClient() as client:
            made = await client.submit(job("python-async"))

            async def texts() -> list[str]:
                return [line.text async for line in client.logs(made, follow=True)]

            done, lines = await asyncio.gather(client.wait(made), texts())
            self.assertEqual(done.status.phase, v1.JOB_PHASE_SUCCEEDED)
            self.assertTrue(lines[-1].endswith("ended with exit code 0"), lines)
            self.assertIn("python-async", [one.metadata.name async for one in client.list(phases=["succeeded"])])
            with self.assertRaises(gangway.NotFound) as missing:
                await client.get("python-missing")
            self.assertEqual(missing.exception.reason, "JOB_NOT_FOUND")
            async for event in client.watch(names=["python-async"]):
                self.assertEqual(event.type, "ADDED")
                break
            kinds = await client.jobs.ListKinds(v1.ListKindsRequest())
            self.assertIn("PyTorchJob", [kind.name for kind in kinds.kinds])
            await client.delete(made)

    async def test_tokens_are_held_waited_for_and_given_back(self) -> None:
        async with AsyncClient() as client:
            pool = "ex:python-async"
            quota = v1.RegisterResourceQuotaRequest(resource_namespace=pool, quota=1)
            await client.resources.RegisterResourceQuota(quota)

            async def take() -> int:
                async with client.token(pool, lease=600) as held:
                    held.check()
                    return held.fence

            async def waiters() -> int:
                return (await client.resources.GetPool(v1.GetPoolRequest(name=pool))).pool.waiters

            async with client.token(pool, lease=600) as held:
                taking = asyncio.create_task(take())
                while await waiters() == 0:
                    await asyncio.sleep(0.01)
                given_up = asyncio.create_task(take())
                while await waiters() < 2:
                    await asyncio.sleep(0.01)
                given_up.cancel()
                while await waiters() > 1:
                    await asyncio.sleep(0.01)
            self.assertGreater(await taking, held.fence)
            with self.assertRaises(asyncio.CancelledError):
                await given_up
            used = await client.resources.GetPool(v1.GetPoolRequest(name=pool))
            self.assertEqual(used.pool.used, 0)


if __name__ == "__main__":
    unittest.main()
