"""A checker of whole histories: what every client did and what responses it got, and what the logs hold in the end.

    journal = Journal(folder, "feeder-1")                 each client notes its events
    events = read_journals(folder)
    history = History.of(events, read_logs(client, topics), Pipeline("in", "out", "group"))
    assert check(history) == []

The rules are in `rules.py`. They know nothing of what was done to the broker: whatever it was, they hold.
"""

from tests.chaos.history.events import (
    Acknowledged,
    CommitAcknowledged,
    CommitAsked,
    Derived,
    EndAsked,
    Ended,
    Event,
    Journal,
    Killed,
    Lost,
    OffsetFetched,
    Owns,
    Paused,
    Read,
    read_journals,
)
from tests.chaos.history.logs import OFFSETS_TOPIC, Fate, Logs, PartitionLog, read_logs, read_partition
from tests.chaos.history.rules import RULES, History, Pipeline, Violation, check

__all__ = [
    "OFFSETS_TOPIC",
    "RULES",
    "Acknowledged",
    "CommitAcknowledged",
    "CommitAsked",
    "Derived",
    "EndAsked",
    "Ended",
    "Event",
    "Fate",
    "History",
    "Journal",
    "Killed",
    "Logs",
    "Lost",
    "OffsetFetched",
    "Owns",
    "PartitionLog",
    "Paused",
    "Pipeline",
    "Read",
    "Violation",
    "check",
    "read_journals",
    "read_logs",
    "read_partition",
]
