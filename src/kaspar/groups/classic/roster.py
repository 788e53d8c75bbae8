"""The members of a classic group, its pending members, its leader, and the protocols that all members support.

The numbers that every JoinGroup asks for (how many wait, how many support a protocol) are kept as members come and go:
a group of a thousand members joins in a thousand steps, not in a million.
"""

from collections.abc import Iterator

from kaspar.coordination import Ticket
from kaspar.groups.classic.member import ClassicMember


class Roster:
    """`pending` have been given a member id and have yet to join with it; `pending_sync` know the generation and have
    yet to send SyncGroup.
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
        """The member id that this instance has now."""
        return self._static_ids.get(instance_id)

    # -- coming and going ----------------------------------------------------------------------------------------------

    def add(self, member: ClassicMember) -> None:
        """The first to come leads."""
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
        """None if it was not a member, or only a pending one. It must not wait for a response any longer."""
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
        """A static member under another id. If it led, it leads."""
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
        """The ticket that waited before, if there was one: the caller has to reply to it."""
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

    # -- what they have in common --------------------------------------------------------------------------------------

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of all."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    @property
    def all_have_joined(self) -> bool:
        return len(self._by_id) == self.awaiting_join_count and not self.pending

    def all_support_one_of(self, names: dict[str, bytes]) -> bool:
        return any(self._supported.get(name, 0) == len(self._by_id) for name in names)

    def elect_protocol(self) -> str:
        """Every member votes for what it likes best of what all support. Most votes win; of equals, what was voted for
        first.
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
        """Whether a member that has joined leads: the leader, or else the first that has."""
        leader = self._by_id.get(self.leader_id) if self.leader_id is not None else None
        if leader is None or leader.awaiting_join is None:
            joined = next((member for member in self if member.awaiting_join is not None), None)
            if joined is None:
                return False
            self.leader_id = joined.member_id
        return True
