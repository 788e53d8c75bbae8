"""The deadlines of a consumer group's members: sessions, revocations, and what members of the classic protocol owe.

None of it is in the log. A heartbeat moves the end of a session and no timer: the timer finds out when it fires that it
came too early. A timer of a member about whom nothing is known here was set by the group that this one was converted
from, or before its first heartbeat: then the time of the timer is the deadline.
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
    """Ends at `deadline_ms`. `unchanged` is the decision on the last heartbeat that changed nothing else, at this
    member epoch and heartbeat interval.
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
        """Members that have to give up partitions, and at which epoch."""
        self._owe_join: set[str] = set()

    # -- sessions ------------------------------------------------------------------------------------------------------

    def extend_session(self, member_id: str, timeout_ms: int, now: Now) -> Session | None:
        """The session, if all that was to be done is done: its timer fires early enough. None: begin a session."""
        session = self._sessions.get(member_id)
        if session is None:
            return None
        deadline_ms = now.steady_ms + timeout_ms
        if deadline_ms < session.timer_at_ms:
            return None
        session.deadline_ms = deadline_ms
        return session

    def begin_session(self, member_id: str, timeout_ms: int, now: Now, decision: Decision) -> None:
        """Or extend it."""
        if self.extend_session(member_id, timeout_ms, now) is None:
            session = self._sessions[member_id] = Session(now.steady_ms + timeout_ms)
            self._set(SESSION, member_id, session.timer_at_ms, decision)

    def end_session(self, member_id: str) -> None:
        """Whatever was heard from it: the next time its timer fires, it is over."""
        self._sessions.pop(member_id, None)

    def session_is_over(self, member_id: str, now: Now, decision: Decision) -> bool:
        """Its timer has fired. If it came too early it is set again."""
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
        """Its timer has fired. A member that has left the epoch by now has done what it had to."""
        return self._revoking.get(member.member_id) == member.member_epoch

    # -- what members of the classic protocol owe ----------------------------------------------------------------------

    def owes_join(self, member: Member, now: Now, decision: Decision) -> None:
        """It has to join again: its time runs from the first response that says so."""
        if member.member_id not in self._owe_join:
            self._owe_join.add(member.member_id)
            self._set(JOIN, member.member_id, now.steady_ms + member.rebalance_timeout_ms, decision)

    def joined(self, member: Member, now: Now, decision: Decision) -> None:
        """And owes a SyncGroup from now on."""
        self._owe_join.discard(member.member_id)
        self._set(JOIN, member.member_id, None, decision)
        self._set(SYNC, member.member_id, now.steady_ms + member.rebalance_timeout_ms, decision)

    def synced(self, member_id: str, decision: Decision) -> None:
        self._set(SYNC, member_id, None, decision)

    # -- all of them ---------------------------------------------------------------------------------------------------

    def forget(self, member_id: str) -> None:
        """A member that joins with this id later has deadlines of its own."""
        self._sessions.pop(member_id, None)
        self._revoking.pop(member_id, None)
        self._owe_join.discard(member_id)

    def cancel(self, member_id: str, decision: Decision) -> None:
        self.forget(member_id)
        for name in (SESSION, REVOCATION, JOIN, SYNC):
            self._set(name, member_id, None, decision)

    def _set(self, name: str, member_id: str, at_ms: int | None, decision: Decision) -> None:
        decision.add_timer(GroupTimer(self._group_id, name, member_id), at_ms)
