"""Submits several jobs by one call, and waits for all of them at the same time."""

import asyncio

from gangway import CallError, torchrun
from gangway.aio import AsyncClient


async def main() -> None:
    async with AsyncClient() as client:
        jobs = [torchrun(f"sweep-{at}", "registry.example/train:1", ["train.py", str(at)], cpu=1) for at in range(3)]
        outcomes = await client.submit_all(jobs)
        refused = [one for one in outcomes if isinstance(one, CallError)]
        waits = [client.wait(one, timeout=3600) for one in outcomes if not isinstance(one, CallError)]
        for done in await asyncio.gather(*waits):
            print(f"{done.metadata.name} has succeeded")
        print(f"{len(refused)} were refused")


asyncio.run(main())
