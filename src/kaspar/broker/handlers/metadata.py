"""Metadata: brokers, topics, partitions and their leaders. What a client asks first, and again whenever things move.

A topic's entry is kept encoded, per version, until the topic changes: a client of thousands of partitions costs a copy.
"""

import uuid
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.broker.handlers import PartlyEncoded, RequestContext
from kaspar.broker.partitions import INTERNAL_TOPICS
from kaspar.metadata import TopicImage
from kaspar.protocol import codec
from kaspar.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

ALL_TOPIC_OPERATIONS: Final = 3576
ALL_CLUSTER_OPERATIONS: Final = 8096
NOT_ASKED: Final = -(2**31)
FIRST_WITH_NULL_FOR_ALL: Final = 1
