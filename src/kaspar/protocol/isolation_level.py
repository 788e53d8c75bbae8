"""The isolation levels of Fetch and ListOffsets: Kafka's IsolationLevel."""

from typing import Final

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
"""Nothing of transactions that are open or were aborted."""

ISOLATION_LEVELS: Final = (READ_UNCOMMITTED, READ_COMMITTED)
