"""Writes the records of requests to topics.

    results = await producers.produce(identity, topic, [OutgoingRecord(value=b"...")])

Requests share one librdkafka producer per identity. A result has the position of its record, or the error. A rejected
record does not fail the rest of its request.
"""

from kaspar.rest.producing.outcomes import Delivered, Outcome, OutgoingRecord, Undelivered
from kaspar.rest.producing.pool import Producers, WaitForOutcomes

__all__ = ["Delivered", "Outcome", "OutgoingRecord", "Producers", "Undelivered", "WaitForOutcomes"]
