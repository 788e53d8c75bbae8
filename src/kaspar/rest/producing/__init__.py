"""Records of requests, written to topics.

    results = await producers.produce(identity, topic, [OutgoingRecord(value=b"...")])

Requests share one producer of librdkafka for each identity. A result says where its record is, or why it is nowhere;
one that is refused does not fail its neighbours.
"""

from kaspar.rest.producing.outcomes import Delivered, Outcome, OutgoingRecord, Undelivered
from kaspar.rest.producing.pool import Producers, WaitForOutcomes

__all__ = ["Delivered", "Outcome", "OutgoingRecord", "Producers", "Undelivered", "WaitForOutcomes"]
