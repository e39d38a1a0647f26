"""Registers a pool, and holds one of its tokens while it works."""

from gangway import Client, v1

with Client() as client:
    client.resources.RegisterResourceQuota(v1.RegisterResourceQuotaRequest(resource_namespace="ex:python", quota=4))
    with client.token("ex:python", amount=2, lease=60) as held:
        for step in range(3):
            held.check()  # Raises TokenLost: another caller may have the token.
            print(f"step {step} under fence {held.fence}")
