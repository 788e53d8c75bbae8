"""The dead-letter topic (KIP-1034): records that cannot be read, processed or written, with the reason in headers."""

import traceback
from typing import Final

from kaspar.streams.topology.context import TaskContext

_PREFIX: Final = "__streams.errors."


def dead_letter(
    context: TaskContext, key: bytes | None, value: bytes | None, timestamp: int, problem: Exception
) -> None:
    """Write the record to the dead-letter topic, if the program has one."""
    topic = context.settings.dead_letter_topic
    if topic is None:
        return
    reasons = {
        "exception": type(problem).__name__,
        "message": str(problem),
        "stacktrace": "".join(traceback.format_exception(problem)),
        "topic": context.topic,
        "partition": str(context.partition),
        "offset": str(context.offset),
    }
    headers = [*(context.headers or ()), *((_PREFIX + name, text.encode()) for name, text in reasons.items())]
    context.outputs.to(topic)((key, value, max(0, timestamp), headers, None))
