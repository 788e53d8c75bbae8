"""The isolation levels of Fetch and ListOffsets: Kafka's IsolationLevel."""

from typing import Final

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
"""Excludes the records of open and aborted transactions."""

ISOLATION_LEVELS: Final = (READ_UNCOMMITTED, READ_COMMITTED)
