"""What a consumer sends when it joins a classic group: the bytes that protocol/consumer_protocol.py reads."""

import struct

from kaspar.protocol import codec
from kaspar.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


def write_subscription(subscription: ConsumerProtocolSubscription, version: int) -> bytes:
    return struct.pack(">h", version) + codec.write(subscription, version)
