"""Where the service is, and what calls show: arguments, the environment and the contexts of the command line."""

from __future__ import annotations

import base64
import json
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

from gangway import errors
from gangway._config import Config, Security, TokenSource, read_config

try:
    import yaml
except ImportError:
    yaml = None

CONTEXTS = {
    "current": "east",
    "contexts": {
        "east": {"addresses": ["gangway.east:7443"], "namespace": "team", "caFile": "/ca.crt", "tokenFile": "/token"},
        "here": {"addresses": ["127.0.0.1:1", "127.0.0.1:2"]},
    },
}


class Configs(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def config(self, address: str | None = None, env: dict[str, str] | None = None, **given: Any) -> Config:
        file = self.folder / "config.yaml"
        if not file.exists():
            file.write_text(json.dumps(CONTEXTS), encoding="utf-8")
        options: dict[str, Any] = {"context": None, "config_file": None, "namespace": None, "token": None}
        options["security"] = Security()
        variables = {"GANGWAY_CONFIG": str(file), **(env or {})}
        return read_config(address, **{**options, **given}, env=variables)

    def test_the_current_context_counts_where_nothing_else_is_said(self) -> None:
        config = self.config()
        self.assertEqual((config.addresses, config.namespace), (("gangway.east:7443",), "team"))
        self.assertEqual(config.security.tokenFile, "/token")
        self.assertEqual(self.config(context="here").addresses, ("127.0.0.1:1", "127.0.0.1:2"))
        with self.assertRaisesRegex(errors.ConfigError, "there are east, here"):
            self.config(context="west")

    @unittest.skipIf(yaml is None, "needs PyYAML")
    def test_the_file_is_yaml_as_the_command_line_writes_it(self) -> None:
        text = "current: here\ncontexts:\n  here:\n    addresses:\n      - 127.0.0.1:7444\n    namespace: team\n"
        text += "    tls: true\n"
        (self.folder / "config.yaml").write_text(text, encoding="utf-8")
        config = self.config()
        self.assertEqual((config.addresses, config.namespace), (("127.0.0.1:7444",), "team"))
        self.assertTrue(config.security.is_encrypted)
        for wrong in ("contexts: [", "contexts: [a]", "current: a\ncontexts: {a: {tls: maybe}}", "- a"):
            (self.folder / "config.yaml").write_text(wrong, encoding="utf-8")
            with self.assertRaises(errors.ConfigError, msg=wrong):
                self.config()

    def test_what_a_context_says_of_security_holds_for_its_own_addresses_alone(self) -> None:
        config = self.config("other:1,another:2")
        self.assertEqual((config.addresses, config.security), (("other:1", "another:2"), Security()))
        config = self.config(env={"GANGWAY_ADDRESS": "other:1", "GANGWAY_NAMESPACE": "mine", "GANGWAY_CA_FILE": "/x"})
        self.assertEqual((config.addresses, config.namespace, config.security.caFile), (("other:1",), "mine", "/x"))
        self.assertEqual(self.config(context="here", env={"GANGWAY_ADDRESS": "other:1"}).addresses[0], "127.0.0.1:1")

    def test_without_anything_the_service_of_this_machine_is_called(self) -> None:
        config = self.config(config_file=self.folder / "missing.yaml")
        self.assertEqual((config.addresses, config.namespace), (("127.0.0.1:7443",), "default"))

    def test_what_is_wrong_is_named(self) -> None:
        cases: list[tuple[str, str | None, dict[str, Any]]] = [
            ("HOST:PORT", "somewhere", {}),
            ("HOST:PORT", "a:1,b:99999", {}),
            ("belong together", "a:1", {"security": Security(clientCertFile="c")}),
            ("without TLS", "a:1", {"token": "t"}),
            ("GANGWAY_TLS", "a:1", {"env": {"GANGWAY_TLS": "yes"}}),
            ("visible characters", "127.0.0.1:1", {"token": "a b"}),
        ]
        for why, address, given in cases:
            with self.assertRaisesRegex(errors.ConfigError, why):
                self.config(address, **given)
        self.assertEqual(self.config("127.0.0.1:1", token="t").token, "t")
        self.assertNotIn("secret", repr(self.config("127.0.0.1:1", token="secret")))

    def source(self, text: str) -> tuple[TokenSource, Path]:
        path = self.folder / "token"
        path.write_text(text, encoding="utf-8")
        return TokenSource(self.config("127.0.0.1:1", security=Security(tokenFile=str(path)))), path

    def test_the_file_of_a_token_is_read_again_when_it_has_changed(self) -> None:
        source, path = self.source("one\n")
        self.assertEqual(source.current(), "one")
        path.write_text("another\n", encoding="utf-8")
        self.assertEqual(source.current(), "another")
        os.remove(path)
        self.assertEqual(source.current(), "another")
        path.write_text("two words\n", encoding="utf-8")
        self.assertEqual(source.current(), "another")

    def test_a_file_without_a_token_is_refused(self) -> None:
        for text in ("", "two words", '{"idToken": 1}'):
            with self.assertRaises(errors.ConfigError):
                self.source(text)[0].current()

    def test_the_login_of_the_command_line_serves_until_it_expires(self) -> None:
        def login(expires_at: int) -> str:
            claims = base64.urlsafe_b64encode(json.dumps({"exp": expires_at}).encode()).decode().rstrip("=")
            return json.dumps({"idToken": f"x.{claims}.y"})

        self.assertTrue(self.source(login(2**40))[0].current().startswith("x."))
        with self.assertRaisesRegex(errors.ConfigError, "has expired"):
            self.source(login(1))[0].current()


if __name__ == "__main__":
    unittest.main()
