"""Questions to a transaction's coordinator that are under way: may this producer write to this partition?

A partition's leader asks before the first batch of a transaction, so that no record is ever part of a transaction that
its coordinator does not know of, which nobody would end. The answer counts only as long as the question stands: a
marker takes it away, since the transaction that was asked about has ended, and so does the batch that begins the
transaction. Kafka's names for these are VerificationStateEntry and VerificationGuard.

Anyone can ask in a producer's name. So questions are kept apart by what a request claims (transactional id, producer
id, epoch): the coordinator says yes to one such claim at most, and a claim that it denies leaves nothing behind.
"""

from typing import TypeAlias

_Claim: TypeAlias = tuple[str, int]
"""A transactional id and a producer's epoch."""


class Verification:
    """What is being asked about one producer's claim. Everyone who asks about it meanwhile shares it."""

    __slots__ = ("askers", "bumps_epoch", "claim", "confirmed", "lowest_sequence", "since_ms")

    def __init__(self, claim: _Claim, base_sequence: int, *, bumps_epoch: bool, since_ms: int) -> None:
        self.claim = claim
        self.lowest_sequence = base_sequence
        """Of the batches that were asked about: no higher one is to be the first in the log."""
        self.bumps_epoch = bumps_epoch
        """Whether the producer follows version 2 of transactions, in which every end has an epoch of its own."""
        self.since_ms = since_ms
        self.confirmed = False
        self.askers = 0
        """How many have asked and were not refused for good."""

    @property
    def epoch(self) -> int:
        return self.claim[1]


class Verifications:
    """By producer id and claim."""

    __slots__ = ("_under_way",)

    def __init__(self) -> None:
        self._under_way: dict[int, dict[_Claim, Verification]] = {}

    def confirmed(self, producer_id: int, epoch: int) -> Verification | None:
        """What the coordinator has said yes to."""
        for found in self._under_way.get(producer_id, {}).values():
            if found.confirmed and found.epoch == epoch:
                return found
        return None

    def begin(
        self, producer_id: int, claim: _Claim, base_sequence: int, *, bumps_epoch: bool, now_ms: int
    ) -> Verification:
        claims = self._under_way.setdefault(producer_id, {})
        found = claims.get(claim)
        if found is None:
            found = claims[claim] = Verification(claim, base_sequence, bumps_epoch=bumps_epoch, since_ms=now_ms)
        elif base_sequence < found.lowest_sequence:
            found.lowest_sequence = base_sequence
        found.askers += 1
        return found

    def stands(self, producer_id: int, verification: Verification) -> bool:
        """Whether nothing has taken the question away."""
        return self._under_way.get(producer_id, {}).get(verification.claim) is verification

    def withdraw(self, producer_id: int, verification: Verification) -> None:
        """The coordinator said no, for good, to one of those who asked."""
        verification.askers -= 1
        if not verification.askers and not verification.confirmed and self.stands(producer_id, verification):
            self._remove(producer_id, verification)

    def drop(self, producer_id: int) -> None:
        """The transaction has begun here."""
        self._under_way.pop(producer_id, None)

    def marker_written(self, producer_id: int, epoch: int) -> None:
        """A transaction has ended. What is asked about with the epoch that its marker brought is the next one."""
        for found in tuple(self._under_way.get(producer_id, {}).values()):
            if not (found.bumps_epoch and found.epoch == epoch):
                self._remove(producer_id, found)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget what was asked about long ago, by the steady clock, and never led to a batch."""
        for producer_id, claims in tuple(self._under_way.items()):
            for found in tuple(claims.values()):
                if now_ms - found.since_ms >= expiration_ms:
                    self._remove(producer_id, found)

    def _remove(self, producer_id: int, verification: Verification) -> None:
        claims = self._under_way[producer_id]
        del claims[verification.claim]
        if not claims:
            del self._under_way[producer_id]
