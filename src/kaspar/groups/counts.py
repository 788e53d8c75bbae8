"""What the groups of a broker have done since it started: plain numbers, which the shell shows as metrics.

They are counted where it is decided, or where the record that says so is taken in, and never while a shard is loaded:
what was counted in another life is not counted again.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class GroupCounts:
    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    classic_rebalances: int = 0
    """Classic groups that got their assignments from their leader."""
    consumer_rebalances: int = 0
    """Epochs that consumer groups have begun."""
