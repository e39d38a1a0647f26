"""Submits a job of two nodes, prints its log, and waits for its end."""

import sys

from gangway import Client, JobFailed, torchrun

with Client() as client:
    job = client.submit(torchrun("hello-python", "registry.example/team/train:1", ["train.py"], nodes=2, cpu=1))
    for line in client.logs(job, follow=True):
        print(f"{line.replica}: {line.text}")
    try:
        client.wait(job, timeout=3600)
    except JobFailed as failure:
        sys.exit(f"{failure.code}, exit code {failure.exit_code} of {failure.container}: {failure.message}")
