"""The deadlines of a consumer group's members: for sessions, revocations, and requests due from classic members.

None of this is in the log. A heartbeat moves the end of a session but not the timer: a timer that fires too early is
set again. If nothing is known here of a timer's member, the timer was set by the group that this one was converted
from, or before the member's first heartbeat. Then the time of the timer is the deadline.
"""

from typing import Final

from kaspar.coordination import Decision, Now
from kaspar.groups.consumer.member import Member
from kaspar.groups.group import GroupTimer

SESSION: Final = "consumer-session"
REVOCATION: Final = "consumer-revocation"
JOIN: Final = "consumer-classic-join"
SYNC: Final = "consumer-classic-sync"


class Session:
    """A member's session, which ends at `deadline_ms`. `unchanged` is the decision on the last heartbeat that changed
    nothing else, at this member epoch and heartbeat interval.
    """

    __slots__ = ("deadline_ms", "heartbeat_interval_ms", "member_epoch", "timer_at_ms", "unchanged")

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.timer_at_ms = deadline_ms
        self.unchanged: Decision | None = None
        self.member_epoch = self.heartbeat_interval_ms = -1


class MemberTimers:
    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._sessions: dict[str, Session] = {}
        self._revoking: dict[str, int] = {}
        """Members that have to give up partitions, and their epochs then."""
        self._owe_join: set[str] = set()

    # -- sessions ------------------------------------------------------------------------------------------------------

    def extend_session(self, member_id: str, timeout_ms: int, now: Now) -> Session | None:
        """Extend the session and return it, if its timer fires early enough. None: a session has to begin."""
        session = self._sessions.get(member_id)
        if session is None:
            return None
        deadline_ms = now.steady_ms + timeout_ms
        if deadline_ms < session.timer_at_ms:
            return None
        session.deadline_ms = deadline_ms
        return session

    def begin_session(self, member_id: str, timeout_ms: int, now: Now, decision: Decision) -> None:
        """Begin a session, or extend the current one."""
        if self.extend_session(member_id, timeout_ms, now) is None:
            session = self._sessions[member_id] = Session(now.steady_ms + timeout_ms)
            self._set(SESSION, member_id, session.timer_at_ms, decision)

    def end_session(self, member_id: str) -> None:
        """End the session the next time its timer fires, whatever was received from the member."""
        self._sessions.pop(member_id, None)

    def session_is_over(self, member_id: str, now: Now, decision: Decision) -> bool:
        """Whether the session is over when its timer has fired. A timer that fired too early is set again."""
        session = self._sessions.get(member_id)
        if session is None or session.deadline_ms <= now.steady_ms:
            return True
        session.timer_at_ms = session.deadline_ms
        self._set(SESSION, member_id, session.timer_at_ms, decision)
        return False

    # -- revocations ---------------------------------------------------------------------------------------------------

    def await_revocation(self, member: Member, now: Now, decision: Decision) -> None:
        self._revoking[member.member_id] = member.member_epoch
        self._set(REVOCATION, member.member_id, now.steady_ms + member.rebalance_timeout_ms, decision)

    def end_revocation(self, member_id: str, decision: Decision) -> None:
        if self._revoking.pop(member_id, None) is not None:
            self._set(REVOCATION, member_id, None, decision)

    def revocation_is_overdue(self, member: Member) -> bool:
        """Whether the member is late when the timer has fired. One at another epoch has given up its partitions."""
        return self._revoking.get(member.member_id) == member.member_epoch

    # -- requests due from classic members -----------------------------------------------------------------------------

    def owes_join(self, member: Member, now: Now, decision: Decision) -> None:
        """Expect the member to rejoin. Its time runs from the first response that says so."""
        if member.member_id not in self._owe_join:
            self._owe_join.add(member.member_id)
            self._set(JOIN, member.member_id, now.steady_ms + member.rebalance_timeout_ms, decision)

    def joined(self, member: Member, now: Now, decision: Decision) -> None:
        """Note that the member has joined, and expect its SyncGroup."""
        self._owe_join.discard(member.member_id)
        self._set(JOIN, member.member_id, None, decision)
        self._set(SYNC, member.member_id, now.steady_ms + member.rebalance_timeout_ms, decision)

    def synced(self, member_id: str, decision: Decision) -> None:
        self._set(SYNC, member_id, None, decision)

    # -- all deadlines -------------------------------------------------------------------------------------------------

    def forget(self, member_id: str) -> None:
        """Drop the member's deadlines. A member that joins with this id later has its own."""
        self._sessions.pop(member_id, None)
        self._revoking.pop(member_id, None)
        self._owe_join.discard(member_id)

    def cancel(self, member_id: str, decision: Decision) -> None:
        self.forget(member_id)
        for name in (SESSION, REVOCATION, JOIN, SYNC):
            self._set(name, member_id, None, decision)

    def _set(self, name: str, member_id: str, at_ms: int | None, decision: Decision) -> None:
        decision.add_timer(GroupTimer(self._group_id, name, member_id), at_ms)
