"""The clients that request subscriptions and push metrics: when they may, and what is remembered of them. Pure.

The rules are Kafka's (ClientMetricsManager, ClientMetricsInstance):
- Clients choose their ids, so memory is bounded: at most MAX_CLIENTS are remembered, and the one that was silent for
  longest is forgotten first. A forgotten client that returns is a new one.
- A client requests or pushes once per interval. A push right after a request is always allowed, because clients spread
  their first pushes over an interval; so is the last push of a client that terminates.
- A changed subscription restarts the client's interval.
"""

import uuid
from collections import OrderedDict
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.telemetry.subscriptions import ClientAttributes, Subscribed, Subscriptions
from kaspar.network.connected_client import ConnectedClient
from kaspar.records.codec import Codec

MAX_CLIENTS: Final = 16_384
EXPIRY_MS: Final = 60_000
"""A client is forgotten if it is silent for this long, or for three of its intervals if that is longer."""

_ASKS_AGAIN_AFTER: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
_NEVER: Final = -(1 << 62)


class ClientInstance:
    __slots__ = (
        "_asked_ms",
        "_pushed_ms",
        "attributes",
        "connection",
        "is_forgotten",
        "last_error",
        "subscribed",
        "terminating",
        "version",
    )

    def __init__(self, attributes: ClientAttributes, subscribed: Subscribed, version: int) -> None:
        self.attributes = attributes
        self.subscribed = subscribed
        self.version = version
        """The version of the subscriptions that `subscribed` is from."""
        self.connection: ConnectedClient | None = None
        """The connection of its last request."""
        self.is_forgotten = False
        self.terminating = False
        self.last_error = ErrorCode.NONE
        self._asked_ms = _NEVER
        self._pushed_ms = _NEVER

    @property
    def expires_after_ms(self) -> int:
        return max(EXPIRY_MS, 3 * self.subscribed.interval_ms)

    def ask(self, now_ms: int) -> None:
        """Note a request for the subscription. Raises Refused if it comes too early."""
        if now_ms - max(self._asked_ms, self._pushed_ms) >= self.subscribed.interval_ms:
            self._asked_ms = now_ms
        elif self.last_error not in _ASKS_AGAIN_AFTER:
            raise Refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "before the next push interval")
        self.last_error = ErrorCode.NONE

    def push(
        self, *, subscription_id: int, terminating: bool, compression: int, size: int, max_bytes: int, now_ms: int
    ) -> None:
        """Check a push. Raises Refused if the client may not push this, or not now."""
        try:
            if self.terminating:
                raise Refused(ErrorCode.INVALID_REQUEST, "the client has already sent its terminating push")
            if not self._may_push(now_ms) and not terminating:
                raise Refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "before the next push interval")
            if subscription_id != self.subscribed.id:
                raise Refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "unknown subscription")
            if compression not in list(Codec):
                raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown compression type {compression}")
            if size > max_bytes:
                raise Refused(ErrorCode.TELEMETRY_TOO_LARGE, f"{size} bytes")
        except Refused as refusal:
            self.last_error = refusal.code
            raise
        finally:
            self.terminating = terminating

    def _may_push(self, now_ms: int) -> bool:
        if self._asked_ms <= self._pushed_ms and now_ms - self._pushed_ms < self.subscribed.interval_ms:
            return False
        self._pushed_ms = now_ms
        return True


class ClientInstances:
    """The clients that sent requests recently, in the order of their last requests."""

    def __init__(self, subscriptions: Subscriptions, max_clients: int = MAX_CLIENTS) -> None:
        self._subscriptions = subscriptions
        self._max_clients = max_clients
        self._by_id: OrderedDict[uuid.UUID, ClientInstance] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, client_instance_id: uuid.UUID) -> bool:
        return client_instance_id in self._by_id

    def get(self, attributes: ClientAttributes) -> tuple[ClientInstance, list[uuid.UUID]]:
        """The client with its current subscription, and the ids of clients whose metrics are outdated: its own if its
        subscription has changed, and that of a client that was forgotten to make room.
        """
        outdated: list[uuid.UUID] = []
        client_instance_id = attributes.client_instance_id
        known = self._by_id.get(client_instance_id)
        version = self._subscriptions.version
        if known is None or known.version < version:
            if known is not None:
                attributes = known.attributes
                known.is_forgotten = True
                outdated.append(client_instance_id)
            known = ClientInstance(attributes, self._subscriptions.of(attributes), version)
            self._by_id[client_instance_id] = known
            if len(self._by_id) > self._max_clients:
                evicted, client = self._by_id.popitem(last=False)
                client.is_forgotten = True
                outdated.append(evicted)
        self._by_id.move_to_end(client_instance_id)
        return known, outdated

    def forget(self, client_instance_id: uuid.UUID) -> None:
        client = self._by_id.pop(client_instance_id, None)
        if client is not None:
            client.is_forgotten = True
