"""The client against a service with TLS, certificates of clients and tokens."""

from __future__ import annotations

import json
import os
import tempfile
import unittest
from pathlib import Path

from asking import Heard
from gangway import Client, DeadlineExceeded, Unauthenticated, Unavailable, v1

ADDRESS = os.environ["SERVICE"]
CA, CERT, KEY = os.environ["CA"], os.environ["CERT"], os.environ["KEY"]


def subject(client: Client) -> str:
    with client:
        return client.access.WhoAmI(v1.WhoAmIRequest()).identity.subject


class Access(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_certificate_is_shown_also_by_a_context(self) -> None:
        given = Client(ADDRESS, ca_file=CA, client_cert_file=CERT, client_key_file=KEY)
        self.assertEqual(subject(given), "dns:me.test")
        members = {"addresses": [ADDRESS], "caFile": CA, "clientCertFile": CERT, "clientKeyFile": KEY}
        file = self.folder / "config.yaml"
        file.write_text(json.dumps({"current": "trial", "contexts": {"trial": members}}), encoding="utf-8")
        self.assertEqual(subject(Client(config_file=file)), "dns:me.test")

    def test_a_caller_that_shows_nothing_or_the_wrong_token_is_unauthenticated(self) -> None:
        for token in (None, "wrong"):
            with self.assertRaises(Unauthenticated) as caught:
                subject(Client(ADDRESS, ca_file=CA, token=token))
            self.assertEqual(caught.exception.reason, "UNAUTHENTICATED")

    def test_a_token_is_read_again_from_its_file(self) -> None:
        path = self.folder / "token"
        path.write_text("wrong\n", encoding="utf-8")
        with Client(ADDRESS, ca_file=CA, client_cert_file=CERT, client_key_file=KEY) as admin:
            secret = admin.access.CreateRobotToken(v1.CreateRobotTokenRequest(name="python")).secret
        with Client(ADDRESS, ca_file=CA, token_file=str(path)) as client:
            with self.assertRaises(Unauthenticated):
                client.access.WhoAmI(v1.WhoAmIRequest())
            path.write_text(secret, encoding="utf-8")
            self.assertEqual(client.access.WhoAmI(v1.WhoAmIRequest()).identity.subject, "robot:python")

    def test_the_service_must_have_a_certificate_of_the_authority_and_of_its_name(self) -> None:
        by_number = ADDRESS.replace("localhost", "127.0.0.1")
        with Heard():
            for client in (Client(ADDRESS, ca_file=CERT), Client(by_number, ca_file=CA)):
                with client, self.assertRaises((Unavailable, DeadlineExceeded)):
                    client.jobs.ListKinds(v1.ListKindsRequest(), timeout=0.5)
        named = Client(by_number, ca_file=CA, client_cert_file=CERT, client_key_file=KEY, tls_server_name="localhost")
        self.assertEqual(subject(named), "dns:me.test")


if __name__ == "__main__":
    unittest.main()
