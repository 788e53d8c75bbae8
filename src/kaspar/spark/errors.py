"""Reports errors to the user as one sentence on the driver, without the Python traceback that Spark adds by default.

Spark's worker processes read SPARK_HIDE_TRACEBACK when they pass an exception to the driver, and exit after it. So it
is set when a KasparError passes, whose text is written for the user, and never for a bug in somebody's code.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kaspar.base.errors import ErrorCode, KasparError, Refused

_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"
_MISSING_ACLS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Reading needs Read on the topic; writing needs Write, and Create if it does "
    "not exist yet",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Committing offsets needs Read on the group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "guarantee = exactly-once needs Write and TwoPhaseCommit on all "
    "transactional ids that start with 'kaspar-spark:'",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "An idempotent producer needs Write on a topic, or IdempotentWrite on the "
    "cluster",
}


class NotAuthorized(KasparError):
    """The principal of the query lacks an ACL."""


@contextmanager
def without_traceback() -> Iterator[None]:
    """A context manager or decorator for calls of Spark in a worker process: hides the traceback of a KasparError."""
    try:
        yield
    except KasparError as error:
        os.environ[_HIDE_TRACEBACK] = "1"
        if isinstance(error, Refused) and error.code in _MISSING_ACLS:
            raise NotAuthorized(
                f"The user of the query is not authorized ({error}). {_MISSING_ACLS[error.code]}: "
                "docs/spark/security.md has the list of ACLs"
            ) from None
        raise


@contextmanager
def naming_brokers(bootstrap_servers: str) -> Iterator[None]:
    """A context manager for requests to brokers: turns a socket's error into one that names the unreachable cluster."""
    try:
        yield
    except OSError as error:
        raise KasparError(
            f"No response from a broker of {bootstrap_servers} (kafka.bootstrap.servers): {error}."
        ) from error
