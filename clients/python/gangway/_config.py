"""Where the service is and how calls are protected: arguments, the environment, contexts of the command line."""

from __future__ import annotations

import base64
import json
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, NoReturn

from .errors import ConfigError

DEFAULT_ADDRESS = "127.0.0.1:7443"
DEFAULT_NAMESPACE = "default"
FILE_BYTES_MAX = 1024 * 1024
"""More than any file of certificates, keys, tokens or contexts has."""
LOGIN_LEFT_S_MIN = 30
"""A login whose token expires sooner is not shown: the call could arrive too late."""

_ADDRESS = re.compile(r"^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$")
_TOKEN = re.compile(r"^[\x21-\x7e]{1,16384}$")
_LOOPBACK = re.compile(r"^(localhost|127(\.\d{1,3}){3}|\[::1\]):")
_SECURITY = ("caFile", "clientCertFile", "clientKeyFile", "tlsServerName", "tokenFile")
_VARIABLES = {
    "caFile": "GANGWAY_CA_FILE",
    "clientCertFile": "GANGWAY_CLIENT_CERT_FILE",
    "clientKeyFile": "GANGWAY_CLIENT_KEY_FILE",
    "tlsServerName": "GANGWAY_TLS_SERVER_NAME",
    "tokenFile": "GANGWAY_TOKEN_FILE",
}


@dataclass(frozen=True)
class Security:
    """How calls are protected. Empty texts: not given."""

    tls: bool = False
    caFile: str = ""
    clientCertFile: str = ""
    clientKeyFile: str = ""
    tlsServerName: str = ""
    tokenFile: str = ""

    def or_else(self, other: Security) -> Security:
        """What is given, and for the rest what the other one gives. A certificate and its key are one setting."""
        pair = self if self.clientCertFile or self.clientKeyFile else other
        return Security(
            tls=self.tls or other.tls,
            caFile=self.caFile or other.caFile,
            clientCertFile=pair.clientCertFile,
            clientKeyFile=pair.clientKeyFile,
            tlsServerName=self.tlsServerName or other.tlsServerName,
            tokenFile=self.tokenFile or other.tokenFile,
        )

    @property
    def is_encrypted(self) -> bool:
        return self.tls or bool(self.caFile or self.clientCertFile or self.tlsServerName)


@dataclass(frozen=True)
class Config:
    """What a client needs to call the service."""

    addresses: tuple[str, ...]
    """HOST:PORT of processes of one service."""
    namespace: str
    security: Security
    token: str = field(default="", repr=False)
    """A bearer token. Empty: that of ``security.tokenFile``, or none."""

    @property
    def is_loopback(self) -> bool:
        return all(_LOOPBACK.match(address) for address in self.addresses)


def read_config(
    address: str | None,
    *,
    context: str | None,
    config_file: str | os.PathLike[str] | None,
    namespace: str | None,
    token: str | None,
    security: Security,
    env: Mapping[str, str],
) -> Config:
    """Arguments come before the environment, and that before the context.

    What a context says of security holds for the context's own addresses alone. Raises ConfigError.
    """
    given = address or ("" if context else env.get("GANGWAY_ADDRESS", ""))
    chosen = _context(_contexts_file(config_file, env), context, is_needed=not given)
    own = security.or_else(_security_of(env))
    if given:
        addresses, merged = addresses_of(given), own
    else:
        addresses = tuple(chosen.addresses) or (DEFAULT_ADDRESS,)
        merged = own.or_else(chosen.security)
    if bool(merged.clientCertFile) != bool(merged.clientKeyFile):
        raise ConfigError("a client certificate and its key belong together: give client_cert_file and client_key_file")
    config = Config(
        addresses=addresses,
        namespace=namespace or env.get("GANGWAY_NAMESPACE") or chosen.namespace or DEFAULT_NAMESPACE,
        security=merged,
        token=token or "",
    )
    shows_token = bool(config.token or merged.tokenFile)
    if shows_token and not merged.is_encrypted and not config.is_loopback:
        raise ConfigError(f"a token is not sent to {', '.join(addresses)} without TLS: add tls=True or ca_file")
    if config.token and not _TOKEN.match(config.token):
        raise ConfigError("token must be 1 to 16384 visible characters of ASCII")
    return config


def addresses_of(text: str) -> tuple[str, ...]:
    """Reads HOST:PORT, or several with commas."""
    addresses = tuple(part.strip() for part in text.split(",") if part.strip())
    for one in addresses or (text,):
        match = _ADDRESS.match(one)
        if match is None or int(match.group(2)) > 65535:
            raise ConfigError(f"the address must be HOST:PORT, or several with commas, not {one!r}")
    return addresses


def read_file(path: str, what: str) -> bytes:
    """Raises ConfigError for a file that cannot be read, or is larger than any of its kind."""
    try:
        with open(path, "rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{what} {path} cannot be read: {error.strerror or error}") from error
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(f"{what} {path} has more than {FILE_BYTES_MAX} bytes")
    return content


class TokenSource:
    """The bearer token of the next call. A changed file is read again; while it cannot be, the last token serves."""

    def __init__(self, config: Config) -> None:
        self._token = config.token
        self._path = "" if config.token else config.security.tokenFile
        self._seen: tuple[int, int, int] | None = None

    def current(self) -> str:
        """Empty: calls show no token. Raises ConfigError if the file never had one."""
        if not self._path:
            return self._token
        try:
            stat = os.stat(self._path)
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if seen != self._seen or not self._token:
                self._token, self._seen = self._read(), seen
        except (OSError, ConfigError) as error:
            if not self._token:
                raise error if isinstance(error, ConfigError) else ConfigError(
                    f"the token file {self._path} cannot be read: {error.strerror}"
                ) from error
        return self._token

    def _read(self) -> str:
        text = read_file(self._path, "the token file").decode("utf-8", "replace").strip()
        token = _token_of_login(text, self._path) if text.startswith("{") else text
        if not _TOKEN.match(token):
            raise ConfigError(f"{self._path} does not hold a token alone")
        return token


def _token_of_login(text: str, path: str) -> str:
    """The token of a file that ``gangway login`` wrote. Only the command line renews it."""
    try:
        token = str(json.loads(text)["idToken"])
        claims = token.split(".")[1]
        expires_at = float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
    except (ValueError, LookupError, TypeError) as error:
        raise ConfigError(f'{path} is no login: begin one with "gangway login"') from error
    if expires_at - time.time() < LOGIN_LEFT_S_MIN:
        raise ConfigError(f'the login in {path} has expired: any command, such as "gangway whoami", renews it')
    return token


def _security_of(env: Mapping[str, str]) -> Security:
    tls = env.get("GANGWAY_TLS") or "off"
    if tls not in ("on", "off"):
        raise ConfigError(f'GANGWAY_TLS is "{tls}"; allowed are on, off')
    return Security(tls=tls == "on", **{name: env.get(variable, "") for name, variable in _VARIABLES.items()})


@dataclass(frozen=True)
class _Context:
    addresses: tuple[str, ...] = ()
    namespace: str = ""
    security: Security = Security()


def _contexts_file(config_file: str | os.PathLike[str] | None, env: Mapping[str, str]) -> Path:
    if config_file is not None:
        return Path(config_file)
    folder = Path(env.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Path(env.get("GANGWAY_CONFIG") or folder / "gangway" / "config.yaml")


def _context(path: Path, named: str | None, *, is_needed: bool) -> _Context:
    """The context of this name, or the current one. An empty one if there is none.

    ``is_needed`` is false if another address was given: a file that cannot be read matters only if a context is named.
    """
    if not path.exists():
        if named:
            raise ConfigError(f"there is no context {named}: {path} does not exist")
        return _Context()
    if not named and not is_needed:
        return _Context()
    document = _document(path)
    contexts = document.get("contexts") or {}
    name = named or document.get("current") or ""
    if not isinstance(contexts, dict) or not isinstance(name, str):
        raise ConfigError(f"{path}: it must have the members current, a name, and contexts, an object")
    if name == "":
        return _Context()
    if name not in contexts:
        known = ", ".join(map(str, contexts))
        raise ConfigError(f"there is no context {name}; {f'there are {known}' if known else 'none is set'}")
    return _context_of(contexts[name], f"{path}: contexts.{name}")


def _context_of(value: Any, at: str) -> _Context:
    def refuse(why: str) -> NoReturn:
        raise ConfigError(f"{at} {why}")

    if not isinstance(value, dict):
        refuse("must be an object with addresses and namespace")
    addresses, tls = value.get("addresses") or [], value.get("tls") or False
    texts = {name: value.get(name) or "" for name in ("namespace", *_SECURITY)}
    if not isinstance(addresses, list) or not all(isinstance(one, str) for one in addresses):
        refuse("must have a list of HOST:PORT as addresses")
    if not isinstance(tls, bool) or not all(isinstance(text, str) for text in texts.values()):
        refuse("must have true or false as tls, and texts as its other members")
    namespace = texts.pop("namespace")
    checked = addresses_of(",".join(addresses)) if addresses else ()
    return _Context(checked, namespace, Security(tls=tls, **texts))


def _document(path: Path) -> dict[str, Any]:
    text = read_file(str(path), "the file of contexts").decode("utf-8", "replace")
    try:
        document: Any = json.loads(text)
    except ValueError:
        try:
            import yaml
        except ImportError as error:
            raise ConfigError(
                f"{path} is YAML, which needs the package PyYAML; or pass the address to Client"
            ) from error
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"{path} is not YAML: {error}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: it must be an object with the members current and contexts")
    return document
