"""What the groups of a broker have done since it started, as plain numbers that are exported as metrics.

They are incremented with the decision, or when its record is replayed, and never while a shard is loaded.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class GroupCounts:
    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    classic_rebalances: int = 0
    """Rebalances of classic groups that were completed by an assignment."""
    consumer_rebalances: int = 0
    """New epochs of consumer groups."""
