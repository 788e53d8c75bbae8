"""How errors reach the user: as one sentence on the driver, without the Python traceback that Spark adds by default.

Spark's worker processes read SPARK_HIDE_TRACEBACK when they hand an exception to the driver, and exit after it. So it
is set when a KasparError passes, whose text is written for the user, and never for a bug in somebody's code.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kaspar.base.errors import KasparError

_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


@contextmanager
def without_traceback() -> Iterator[None]:
    """Around what Spark calls in a worker process; also as a decorator."""
    try:
        yield
    except KasparError:
        os.environ[_HIDE_TRACEBACK] = "1"
        raise


@contextmanager
def naming_brokers(bootstrap_servers: str) -> Iterator[None]:
    """Around requests to brokers: a socket's error becomes one that names the cluster that was not reached."""
    try:
        yield
    except OSError as error:
        raise KasparError(
            f"No response from a broker of {bootstrap_servers} (kafka.bootstrap.servers): {error}."
        ) from error
