"""How channels to the service are made. Both clients make them alike, from grpcio's two kinds of channels."""

from __future__ import annotations

import threading
from typing import Any, Callable

import grpc

from ._config import Config, TokenSource, read_file
from ._services import Rpc

SENT_BYTES_MAX = 16 * 1024 * 1024
"""As much as the service takes."""
RECEIVED_BYTES_MAX = 256 * 1024 * 1024
"""Room for a page of 1,000 jobs with templates."""
PING_MS = 20_000
"""A connection that is silent for so long is asked whether it answers: its process may hang."""
PING_WAIT_MS = 10_000
CONNECT_MS = 5_000
"""How long a connection may take."""
RECONNECT_MS_MAX = 2_000
"""The longest pause between connections. The pauses between calls come on top."""
VERSION = "0.1.0"


class Lines:
    """Channels to the addresses of one service. After a failed call, the next one goes to the next address."""

    def __init__(self, config: Config, insecure: Callable[..., Any], secure: Callable[..., Any]) -> None:
        self._config = config
        self._token = TokenSource(config)
        self._insecure, self._secure = insecure, secure
        self._credentials = self._read_credentials()
        self._token.current()  # A file that has no token is told of at once.
        self._lock = threading.Lock()
        self._channels: dict[str, Any] = {}
        self._methods: dict[tuple[str, str], Any] = {}
        self._current = 0
        self._is_closed = False

    def _read_credentials(self) -> Any:
        security = self._config.security
        if not security.is_encrypted:
            return None

        def read(path: str, what: str) -> bytes | None:
            return read_file(path, what) if path else None

        return grpc.ssl_channel_credentials(
            root_certificates=read(security.caFile, "ca_file"),
            private_key=read(security.clientKeyFile, "client_key_file"),
            certificate_chain=read(security.clientCertFile, "client_cert_file"),
        )

    def method(self, rpc: Rpc) -> tuple[Any, str]:
        """What calls a method at the current address, and that address."""
        with self._lock:
            if self._is_closed:
                raise ValueError("the client is closed")
            address, channel = self._open()
            found = self._methods.get((address, rpc.path))
            if found is None:
                make = channel.unary_stream if rpc.is_stream else channel.unary_unary
                found = make(
                    rpc.path,
                    request_serializer=rpc.request.SerializeToString,
                    response_deserializer=rpc.response.FromString,
                )
                self._methods[(address, rpc.path)] = found
            return found, address

    def channel(self) -> Any:
        """The channel to the current address. None: the client is closed."""
        with self._lock:
            return None if self._is_closed else self._open()[1]

    def _open(self) -> tuple[str, Any]:
        address = self._config.addresses[self._current % len(self._config.addresses)]
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = self._new_channel(address)
        return address, channel

    def failed(self, address: str) -> None:
        """Takes note that an address did not answer."""
        with self._lock:
            addresses = self._config.addresses
            if addresses[self._current % len(addresses)] == address:
                self._current += 1

    def metadata(self) -> list[tuple[str, str]]:
        """What a call shows. Raises ConfigError if the token's file never had one."""
        token = self._token.current()
        return [("authorization", f"Bearer {token}")] if token else []

    def close(self) -> list[Any]:
        """The channels, which the caller closes."""
        with self._lock:
            self._is_closed = True
            channels = list(self._channels.values())
            self._channels.clear()
            self._methods.clear()
            return channels

    def _new_channel(self, address: str) -> Any:
        options: list[tuple[str, Any]] = [
            ("grpc.primary_user_agent", f"gangway-python/{VERSION}"),
            ("grpc.max_send_message_length", SENT_BYTES_MAX),
            ("grpc.max_receive_message_length", RECEIVED_BYTES_MAX),
            ("grpc.keepalive_time_ms", PING_MS),
            ("grpc.keepalive_timeout_ms", PING_WAIT_MS),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", CONNECT_MS),
            ("grpc.max_reconnect_backoff_ms", RECONNECT_MS_MAX),
            # This client repeats calls itself, since it knows which may be repeated and for how long.
            ("grpc.enable_retries", 0),
            # Another client in the process must not decide when this one connects again.
            ("grpc.use_local_subchannel_pool", 1),
        ]
        if self._config.is_loopback:
            options.append(("grpc.enable_http_proxy", 0))
        if self._config.security.tlsServerName:
            options.append(("grpc.ssl_target_name_override", self._config.security.tlsServerName))
        if self._credentials is None:
            return self._insecure(address, options=options)
        return self._secure(address, self._credentials, options=options)


UNREACHED = ("UNAVAILABLE", "DEADLINE_EXCEEDED")
"""After these, the next call goes to another address."""
