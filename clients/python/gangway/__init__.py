"""A client of Gangway, which admits and places distributed training jobs.

``Client`` makes blocking calls; ``gangway.aio.AsyncClient`` has the same methods as coroutines. ``gangway.v1`` has the
messages of the API, ``gangway.errors`` all errors.
"""

from . import v1
from ._arguments import Manifest
from ._flows import JobEvent, JobRef, LogLine
from ._lines import VERSION as __version__
from .client import Client, HeldToken
from .errors import (
    Aborted,
    AlreadyExists,
    CallError,
    Cancelled,
    ConfigError,
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    FieldError,
    InternalError,
    InvalidArgument,
    JobCancelled,
    JobFailed,
    JobGone,
    ManifestError,
    NotFound,
    Obstacle,
    PermissionDenied,
    ResourceExhausted,
    TokenLost,
    TokenRefused,
    Unauthenticated,
    Unavailable,
    Unimplemented,
    WaitTimeout,
)
from .jobs import torchrun

__all__ = [
    "Aborted",
    "AlreadyExists",
    "CallError",
    "Cancelled",
    "Client",
    "ConfigError",
    "DeadlineExceeded",
    "Error",
    "FailedPrecondition",
    "FieldError",
    "HeldToken",
    "InternalError",
    "InvalidArgument",
    "JobCancelled",
    "JobEvent",
    "JobFailed",
    "JobGone",
    "JobRef",
    "LogLine",
    "Manifest",
    "ManifestError",
    "NotFound",
    "Obstacle",
    "PermissionDenied",
    "ResourceExhausted",
    "TokenLost",
    "TokenRefused",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "WaitTimeout",
    "__version__",
    "torchrun",
    "v1",
]
