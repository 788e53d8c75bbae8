"""Verifications under way (KIP-890): a leader asks the transaction coordinator whether a producer may write here.

A partition's leader asks before the first batch of a transaction, so that no record is ever part of a transaction that
its coordinator does not know, and that would never end. The response counts only while the verification exists: a
marker removes it, since the transaction in question has ended, and so does the batch that begins the transaction.
Kafka's names for these are VerificationStateEntry and VerificationGuard.

Any client can send a request in a producer's name. So verifications are distinguished by what a request claims
(transactional id, producer id, epoch): the coordinator confirms at most one of these claims, and a claim that it denies
has no effect.
"""

from typing import TypeAlias

_Claim: TypeAlias = tuple[str, int]
"""A transactional id and a producer's epoch."""


class Verification:
    """The verification of one producer's claim, shared by all requests that make the same claim meanwhile."""

    __slots__ = ("askers", "bumps_epoch", "claim", "confirmed", "lowest_sequence", "since_ms")

    def __init__(self, claim: _Claim, base_sequence: int, *, bumps_epoch: bool, since_ms: int) -> None:
        self.claim = claim
        self.lowest_sequence = base_sequence
        """The lowest sequence of the batches that wait for it: none with a higher one may be the first in the log."""
        self.bumps_epoch = bumps_epoch
        """Whether the producer uses transaction version 2, in which every transaction ends with a new epoch."""
        self.since_ms = since_ms
        self.confirmed = False
        self.askers = 0
        """How many requests are waiting for it, or have to retry."""

    @property
    def epoch(self) -> int:
        return self.claim[1]


class Verifications:
    """The verifications by producer id and claim."""

    __slots__ = ("_under_way",)

    def __init__(self) -> None:
        self._under_way: dict[int, dict[_Claim, Verification]] = {}

    def confirmed(self, producer_id: int, epoch: int) -> Verification | None:
        """The verification that the coordinator has confirmed, if there is one."""
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
        """Whether the verification has not been removed."""
        return self._under_way.get(producer_id, {}).get(verification.claim) is verification

    def withdraw(self, producer_id: int, verification: Verification) -> None:
        """Remove the verification, whose claim the coordinator has denied permanently, if no other request needs it."""
        verification.askers -= 1
        if not verification.askers and not verification.confirmed and self.stands(producer_id, verification):
            self._remove(producer_id, verification)

    def drop(self, producer_id: int) -> None:
        """Remove all verifications of a producer: a batch has begun the transaction."""
        self._under_way.pop(producer_id, None)

    def marker_written(self, producer_id: int, epoch: int) -> None:
        """Remove the verifications for a transaction that has ended. Those with the new epoch of its marker are for the
        next one and stay.
        """
        for found in tuple(self._under_way.get(producer_id, {}).values()):
            if not (found.bumps_epoch and found.epoch == epoch):
                self._remove(producer_id, found)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget old verifications that never led to a batch; their age is measured on the steady clock."""
        for producer_id, claims in tuple(self._under_way.items()):
            for found in tuple(claims.values()):
                if now_ms - found.since_ms >= expiration_ms:
                    self._remove(producer_id, found)

    def _remove(self, producer_id: int, verification: Verification) -> None:
        claims = self._under_way[producer_id]
        del claims[verification.claim]
        if not claims:
            del self._under_way[producer_id]
