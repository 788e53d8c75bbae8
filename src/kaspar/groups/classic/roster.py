"""The members of a classic group, its pending members, its leader, and the protocols that all members support.

The counts that every JoinGroup needs (how many members wait, how many support a protocol) are updated as members join
and leave: a group of a thousand members joins in a thousand steps, not in a million.
"""

from collections.abc import Iterator

from kaspar.coordination import Ticket
from kaspar.groups.classic.member import ClassicMember


class Roster:
    """`pending` members have been given a member id and have not joined with it yet; `pending_sync` members know the
    generation and have not sent SyncGroup yet.
    """

    __slots__ = ("_by_id", "_static_ids", "_supported", "awaiting_join_count", "leader_id", "pending", "pending_sync")

    def __init__(self) -> None:
        self._by_id: dict[str, ClassicMember] = {}
        self._static_ids: dict[str, str] = {}
        self._supported: dict[str, int] = {}
        self.awaiting_join_count = 0
        self.leader_id: str | None = None
        self.pending: set[str] = set()
        self.pending_sync: set[str] = set()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[ClassicMember]:
        return iter(self._by_id.values())

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._by_id

    def get(self, member_id: str) -> ClassicMember | None:
        return self._by_id.get(member_id)

    def __getitem__(self, member_id: str) -> ClassicMember:
        return self._by_id[member_id]

    def static_id(self, instance_id: str) -> str | None:
        """The current member id of this instance."""
        return self._static_ids.get(instance_id)

    # -- joining and leaving -------------------------------------------------------------------------------------------

    def add(self, member: ClassicMember) -> None:
        """Add a member. The first one becomes the leader."""
        assert member.member_id not in self._by_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self._by_id[member.member_id] = member
        self._count_protocols(member, 1)
        if member.awaiting_join is not None:
            self.awaiting_join_count += 1
        if member.instance_id is not None:
            self._static_ids[member.instance_id] = member.member_id
        self.pending.discard(member.member_id)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Remove a member, which must not wait for a response. None if it was not a member, or only a pending one."""
        self.pending.discard(member_id)
        self.pending_sync.discard(member_id)
        member = self._by_id.pop(member_id, None)
        if member is None:
            return None
        assert member.awaiting_join is None
        assert member.awaiting_sync is None
        self._count_protocols(member, -1)
        if member.instance_id is not None:
            del self._static_ids[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self._by_id), None)
        return member

    def replace(self, old_id: str, member: ClassicMember) -> None:
        """Replace a static member by the same instance with another id. The new one leads if the old one did."""
        led = self.leader_id == old_id
        self.remove(old_id)
        self.add(member)
        if led:
            self.leader_id = member.member_id

    def update_protocols(self, member: ClassicMember, protocols: dict[str, bytes]) -> None:
        if protocols.keys() == member.protocols.keys():
            member.protocols = protocols
            return
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)

    def await_join(self, member: ClassicMember, ticket: Ticket | None) -> Ticket | None:
        """Set the ticket of the member's JoinGroup. The caller has to reply to the ticket that this returns, if any."""
        waited, member.awaiting_join = member.awaiting_join, ticket
        self.awaiting_join_count += (ticket is not None) - (waited is not None)
        return waited

    def _count_protocols(self, member: ClassicMember, step: int) -> None:
        for name in member.protocols:
            count = self._supported.get(name, 0) + step
            if count:
                self._supported[name] = count
            else:
                del self._supported[name]

    # -- rebalance timeout, protocol and leader ------------------------------------------------------------------------

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    @property
    def all_have_joined(self) -> bool:
        return len(self._by_id) == self.awaiting_join_count and not self.pending

    def all_support_one_of(self, names: dict[str, bytes]) -> bool:
        return any(self._supported.get(name, 0) == len(self._by_id) for name in names)

    def elect_protocol(self) -> str:
        """The protocol with the most votes; of equals, the one that was voted for first. Every member votes for the one
        it prefers among those that all members support.
        """
        candidates = {name for name, count in self._supported.items() if count == len(self._by_id)}
        votes: dict[str, int] = {}
        for member in self:
            for name in member.protocols:
                if name in candidates:
                    votes[name] = votes.get(name, 0) + 1
                    break
        return max(votes, key=votes.__getitem__)

    def elect_joined_leader(self) -> bool:
        """Make a member that has joined the leader: the current leader, or else the first one. False if none has."""
        leader = self._by_id.get(self.leader_id) if self.leader_id is not None else None
        if leader is None or leader.awaiting_join is None:
            joined = next((member for member in self if member.awaiting_join is not None), None)
            if joined is None:
                return False
            self.leader_id = joined.member_id
        return True
