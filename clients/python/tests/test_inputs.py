"""Manifests, their documents, and jobs that are made without one."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any

from gangway import errors, torchrun, v1
from gangway._arguments import Manifests, filter_of
from gangway._documents import documents_of
from gangway._manifest import KindForm, read_manifest
from scripted import Scripted

try:
    import yaml
except ImportError:
    yaml = None

KINDS = [KindForm("PyTorchJob", "kubeflow.org/v1", "pytorchReplicaSpecs", False, False, False)]
TEMPLATE = {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}


def pytorch(**spec: Any) -> dict[str, Any]:
    members = {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": TEMPLATE}}, **spec}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "a"}, "spec": members}


class ReadingManifests(unittest.TestCase):
    def problems(self, document: Any, **where: Any) -> tuple[str, ...]:
        with self.assertRaises(errors.ManifestError) as caught:
            read_manifest(document, KINDS, namespace="default", **where)
        return caught.exception.problems

    def test_everything_that_is_wrong_is_named(self) -> None:
        wrong = pytorch(runPolicy={"backofLimit": 1, "cleanPodPolicy": "Some", "suspend": "yes"})
        del wrong["metadata"]["name"]
        text = " ".join(self.problems(wrong))
        for part in ("backofLimit: is not a known field", "cleanPodPolicy", "suspend", "metadata.name: is required"):
            self.assertIn(part, text)
        self.assertIn("the served kinds are PyTorchJob", self.problems({**pytorch(), "kind": "X"})[0])
        self.assertIn("apiVersion", self.problems({**pytorch(), "apiVersion": "kubeflow.org/v2"})[0])
        self.assertIn("must be an object", self.problems([])[0])

    def test_a_namespace_that_the_call_names_must_be_that_of_the_manifest(self) -> None:
        document = pytorch()
        document["metadata"]["namespace"] = "team"
        self.assertEqual(read_manifest(document, KINDS, namespace="default").metadata.namespace, "team")
        self.assertIn("team", self.problems(document, is_explicit=True)[0])

    def test_a_mapping_needs_the_kinds_of_the_service_only_once(self) -> None:
        kinds = v1.ListKindsResponse(
            kinds=[
                v1.Kind(name="PyTorchJob", api_version="kubeflow.org/v1", replica_specs_field="pytorchReplicaSpecs")
            ]
        )
        service = Scripted(kinds)
        manifests = Manifests(service.env, "team")
        for _ in range(2):
            self.assertEqual(service.run(manifests.request(pytorch(), None)).job.metadata.namespace, "team")
        self.assertEqual(len(service.calls), 1)

    def test_phases_are_words(self) -> None:
        self.assertEqual(filter_of("", [], ["running"], None, "").phases, [v1.JOB_PHASE_RUNNING])
        with self.assertRaises(ValueError):
            filter_of("", [], ["walking"], None, "")


class Documents(unittest.TestCase):
    def test_json_needs_no_package(self) -> None:
        self.assertEqual(documents_of('{"kind": "Job"}'), [{"kind": "Job"}])
        both = {"apiVersion": "v1", "kind": "List", "items": [{"kind": "A"}, {"kind": "B"}]}
        self.assertEqual(documents_of(both), [{"kind": "A"}, {"kind": "B"}])

    def test_a_path_is_a_file_and_a_text_is_not(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "job.json")
            path.write_text('{"kind": "Job"}', encoding="utf-8")
            self.assertEqual(documents_of(path), [{"kind": "Job"}])
            with self.assertRaisesRegex(errors.ManifestError, "pathlib.Path"):
                documents_of(str(path))
            with self.assertRaisesRegex(errors.ManifestError, "cannot be read"):
                documents_of(Path(folder, "missing.json"))

    @unittest.skipIf(yaml is None, "needs PyYAML")
    def test_yaml_is_read_as_the_command_line_reads_it(self) -> None:
        text = "a: on\nb: 12:30\nc: 0755\nd: 2026-01-02\ne: ~\nf: 1e3\n1: x\ng: &g {h: true}\ni: {<<: *g, j: .5}\n"
        expected = {"a": "on", "b": "12:30", "c": 493, "d": "2026-01-02", "e": None, "f": 1000.0, "1": "x"}
        self.assertEqual(documents_of(text), [{**expected, "g": {"h": True}, "i": {"h": True, "j": 0.5}}])
        self.assertEqual(documents_of("kind: A\n---\n---\nkind: B\n"), [{"kind": "A"}, {"kind": "B"}])

    @unittest.skipIf(yaml is None, "needs PyYAML")
    def test_texts_that_grow_or_mislead_are_refused(self) -> None:
        wide = "a0: &a0 [x]\n"
        for at in range(1, 9):
            wide += f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]\n"
        many = "a: &a x\nb: [" + ", ".join(["*a"] * 1001) + "]\n"
        for text in (wide, many, "a: 1\na: 2\n", "image: {{ .Values.image }}\n", "a: .nan\n", "a: !!python/name:x y"):
            with self.assertRaises(errors.ManifestError, msg=text[:40]):
                documents_of(text)
        for text in ("[" * 70 + "]" * 70, "[" * 100_000):
            with self.assertRaises(errors.ManifestError):
                documents_of(text)


class Torchrun(unittest.TestCase):
    def test_one_node_is_the_master_and_the_others_are_workers(self) -> None:
        job = torchrun("a", "image", ["train.py"], nodes=4, gpus_per_node=8, queue="nlp", max_runtime=90.5)
        specs = job.spec.replica_specs
        self.assertEqual({role: specs[role].replicas for role in specs}, {"Master": 1, "Worker": 3})
        container = specs["Worker"].template["spec"]["containers"][0]
        self.assertEqual(container["resources"]["limits"]["nvidia.com/gpu"], "8")
        self.assertEqual(list(container["args"]), ["train.py"])
        self.assertEqual(job.spec.kind_spec["nprocPerNode"], "8")
        self.assertEqual(job.spec.run_policy.scheduling_policy.queue, "nlp")
        self.assertEqual(job.spec.run_policy.max_runtime.ToMilliseconds(), 90_500)
        self.assertEqual(list(torchrun("a", "i", []).spec.replica_specs), ["Master"])

    def test_numbers_that_make_no_job_are_refused(self) -> None:
        for wrong in ({"nodes": 0}, {"gpus_per_node": -1}, {"nodes": 2, "min_nodes": 3}, {"restart_policy": "Maybe"}):
            with self.assertRaises(ValueError):
                torchrun("a", "i", [], **wrong)  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
