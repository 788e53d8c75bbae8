"""What goes wrong is told in one sentence: Spark shows a whole Python traceback on the driver, unless told not to.

Spark's worker processes look at this environment variable when they hand an exception to the driver, and end after it.
So it is set when one of ours passes, whose text is a sentence for a person, and never for a fault in somebody's code.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kaspar.base.errors import KasparError

_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Around what Spark calls in a worker process; also as a decorator."""
    try:
        yield
    except KasparError:
        os.environ[_HIDE_TRACEBACK] = "1"
        raise


@contextmanager
def answered_by(bootstrap_servers: str) -> Iterator[None]:
    """Around what asks brokers, and gave up asking again: which cluster it is that cannot be reached."""
    try:
        yield
    except OSError as error:
        raise KasparError(
            f"A broker of {bootstrap_servers} (kafka.bootstrap.servers) does not answer, or is not reached: {error}."
        ) from error
