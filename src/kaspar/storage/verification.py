"""Questions to a transaction's coordinator that are under way: may this producer write to this partition?

A partition's leader asks before the first batch of a transaction, so that no record is ever part of a transaction that
its coordinator does not know of, which nobody would end. The answer counts only as long as the question stands: a
marker takes it away, since the transaction that was asked about has ended, and so does the batch that begins the
transaction. Kafka's names for these are VerificationStateEntry and VerificationGuard.
"""


class Verification:
    """What is being asked about one producer. Everyone who asks about it meanwhile shares it."""

    __slots__ = ("bumps_epoch", "confirmed", "epoch", "lowest_sequence", "since_ms")

    def __init__(self, epoch: int, base_sequence: int, *, bumps_epoch: bool, since_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = base_sequence
        """Of the batches that were asked about: no higher one is to be the first in the log."""
        self.bumps_epoch = bumps_epoch
        """Whether the producer follows version 2 of transactions, in which every end has an epoch of its own."""
        self.since_ms = since_ms
        self.confirmed = False


class Verifications:
    """By producer id."""

    __slots__ = ("_under_way",)

    def __init__(self) -> None:
        self._under_way: dict[int, Verification] = {}

    def get(self, producer_id: int) -> Verification | None:
        return self._under_way.get(producer_id)

    def begin(
        self, producer_id: int, epoch: int, base_sequence: int, *, bumps_epoch: bool, now_ms: int
    ) -> Verification:
        found = self._under_way.get(producer_id)
        if found is None:
            found = Verification(epoch, base_sequence, bumps_epoch=bumps_epoch, since_ms=now_ms)
            self._under_way[producer_id] = found
        elif epoch > found.epoch:
            found.epoch, found.lowest_sequence = epoch, base_sequence
            found.confirmed = False
        elif epoch == found.epoch and base_sequence < found.lowest_sequence:
            found.lowest_sequence = base_sequence
        return found

    def drop(self, producer_id: int) -> None:
        """The transaction has begun here."""
        self._under_way.pop(producer_id, None)

    def marker_written(self, producer_id: int, epoch: int) -> None:
        """A transaction has ended. What is asked about with the epoch that its marker brought is the next one."""
        found = self._under_way.get(producer_id)
        if found is not None and not (found.bumps_epoch and found.epoch == epoch):
            del self._under_way[producer_id]

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget what was asked about long ago and never led to a batch."""
        for producer_id in [
            producer_id for producer_id, found in self._under_way.items() if now_ms - found.since_ms >= expiration_ms
        ]:
            del self._under_way[producer_id]
