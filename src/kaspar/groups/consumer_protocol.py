"""What consumers tell each other through a classic group: the bytes of Kafka's ConsumerProtocol, as far as a broker reads
them. They begin with a version; one that is not known yet is read as the last that is, as Kafka does.
"""

import struct
from typing import Final

from kaspar.base.errors import MalformedBytes
from kaspar.protocol import codec
from kaspar.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kaspar.protocol.schema import VersionRange

_VERSION: Final = struct.Struct(">h")
_SUBSCRIPTION_VERSIONS: Final = VersionRange.parse(ConsumerProtocolSubscription.SCHEMA.versions)


def version_of(metadata: bytes) -> int:
    if len(metadata) < _VERSION.size:
        raise MalformedBytes("a subscription is too short to say its version")
    version: int = _VERSION.unpack_from(metadata)[0]
    if version < 0:
        raise MalformedBytes(f"a subscription cannot have version {version}")
    return version


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    version = min(version_of(metadata), _SUBSCRIPTION_VERSIONS.last)
    subscription, _ = codec.read(ConsumerProtocolSubscription, version, metadata, _VERSION.size)
    return subscription
