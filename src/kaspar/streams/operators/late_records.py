"""Records that arrive after the windows that they belong to are closed.

They are dropped and counted, and written to the program's topic for late records if it has one
(kaspar.late.topic.name), with the original bytes of key and value.
"""

from typing import Final

from kaspar.streams.topology.context import TaskContext

LATE: Final = "late"
_PREFIX: Final = "__streams.late."


def late_record(context: TaskContext, timestamp: int) -> None:
    """Write the current record, which has no open window, to the topic for late records. The caller counts it."""
    topic = context.settings.late_topic
    if topic is None:
        return
    origin = {"topic": context.topic, "partition": str(context.partition), "offset": str(context.offset)}
    headers = [*(context.headers or ()), *((_PREFIX + name, text.encode()) for name, text in origin.items())]
    context.outputs.to(topic)((context.raw_key, context.raw_value, timestamp, headers, None))
