"""The errors of the exactly-once protocol. Their texts are sentences for the person who runs the query."""

from kaspar.base.errors import KasparError


class Superseded(KasparError):
    """Another run has taken over the query: this one may publish nothing more."""


class NameTaken(KasparError):
    """The query's name belongs to another stream, or this write is the second of a batch under that name."""


class DecidedButAborted(KasparError):
    """A transaction that a decision names was aborted, by a timeout or by hand, or its outcome is unknown."""

    def __init__(self, message: str, transactions: int) -> None:
        super().__init__(message)
        self.transactions = transactions
        """The number of transactions that were aborted or are in doubt."""


class DecidedNotCommitted(KasparError):
    """The batch is decided and will be visible, but the brokers cannot be reached to commit it now."""


class LogLost(KasparError):
    """The decision log has lost records: what was decided before is unknown."""


class NotPublished(KasparError):
    """The batch cannot be published as it was written, and nothing of it was: it has to be written again."""
