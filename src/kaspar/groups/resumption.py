"""Begins the sessions of all members after a shard was loaded from the log, in slices."""

from collections import deque
from typing import Final

from kaspar.coordination import Decision, Now
from kaspar.groups.table import GroupTable

RESUME: Final = "resume"
"""The timer of the next slice."""
MAX_PER_SLICE: Final = 1000
"""The number of groups and members."""


class Resumption:
    def __init__(self, table: GroupTable) -> None:
        self._table = table
        self._left: deque[str] = deque()

    def begin(self, now: Now) -> Decision:
        self._left.extend(self._table.groups)
        return self.resume(now)

    def resume(self, now: Now) -> Decision:
        """Visit the next slice. If requests have arrived since the log was loaded, the sessions of their members begin
        again. A group whose decision has records ends the slice.
        """
        decision = Decision()
        visited = 0
        while self._left and visited < MAX_PER_SLICE and not decision.records and decision.if_refused is None:
            group = self._table.get(self._left.popleft())
            visited += 1
            if group is not None:
                visited += group.member_count
                resumed = group.resume(now)
                decision.add_timers(resumed.timers)
                decision.add_replies(resumed.replies)
                decision.records, decision.if_refused = resumed.records, resumed.if_refused
        if self._left:
            decision.add_timer(RESUME, now.steady_ms)
        return decision
