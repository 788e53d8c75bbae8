"""Creates the Kafka clients of a service: librdkafka's for records, the wire client for administration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, Protocol

from kaspar.base.errors import InvalidSetting
from kaspar.base.log import get_log
from kaspar.callers.identities import EXAMPLE, SERVICE, Identity, check_propagation
from kaspar.client.admin.session import Admin
from kaspar.config.client_properties import milliseconds
from kaspar.security.client import ClientSecurity, client_security
from kaspar.security.oauthbearer import OAuthBearerClient
from kaspar.security.sasl import SaslClient
from kaspar.tools.librdkafka import Translated, consumer_settings, producer_settings

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer

log = get_log(__name__)

_PRODUCER_DEFAULTS: Final = {"buffer.memory": "33554432", "linger.ms": "0"}
"""Java's producers have 32 MiB, librdkafka's default is 1 GiB. A request already contains a batch of records, so
lingering would only add latency."""
_QUEUED_KIB: Final = 8192
"""Per consumer. There are many, and librdkafka's default is 64 MiB."""

OnError = Callable[["KafkaError"], None]


class ClientProperties(Protocol):
    """The properties of each kind of client, under the names that Java's clients use. They may contain secrets."""

    @property
    def producer(self) -> Mapping[str, str]: ...
    @property
    def consumer(self) -> Mapping[str, str]: ...
    @property
    def admin(self) -> Mapping[str, str]: ...


class KafkaClients:
    """Creates clients. The constructor raises InvalidSetting if the properties are invalid, so that startup fails
    rather than the first request."""

    def __init__(self, properties: ClientProperties, *, client_id: str, propagate: bool) -> None:
        """`client_id` is used by clients whose properties set none. `propagate`: clients log in with the identities of
        callers."""
        self._properties = properties
        self._client_id = {"client.id": client_id}
        self.max_block_s = milliseconds(properties.producer, "max.block.ms", 60_000) / 1000
        if propagate:
            check_propagation(properties.admin)
        somebody = EXAMPLE if propagate else SERVICE
        for translated in (self._producer_settings(somebody), self._consumer_settings(somebody, {"group.id": "none"})):
            for sentence in translated.warnings:
                log.warning(sentence)
        try:
            self.new_admin(somebody).close()
        except ValueError:
            raise InvalidSetting(
                "Invalid value for configuration bootstrap.servers: some entry is not host:port"
            ) from None

    def new_producer(self, identity: Identity, on_error: OnError) -> "tuple[Producer, int]":
        """The producer, and the largest record in bytes that it accepts."""
        from confluent_kafka import Producer

        settings = self._producer_settings(identity).settings
        largest = settings["message.max.bytes"]
        assert isinstance(largest, int)
        return Producer({**settings, **_common(identity, on_error)}), largest

    def new_consumer(self, identity: Identity, properties: Mapping[str, str], on_error: OnError) -> "Consumer":
        """Raises InvalidSetting."""
        from confluent_kafka import Consumer

        settings = self._consumer_settings(identity, properties).settings
        # Offsets are stored when records go into a response, not when librdkafka delivers them.
        settings |= {"enable.auto.offset.store": False, "enable.partition.eof": False}
        settings.setdefault("queued.max.messages.kbytes", _QUEUED_KIB)
        return Consumer({**settings, **_common(identity, on_error)})

    def new_admin(self, identity: Identity) -> Admin:
        properties = self._client_id | dict(identity.properties(self._properties.admin))
        security = client_security(properties)
        if security is not None and identity.token is not None:
            parts = {each.name: getattr(security, each.name) for each in fields(ClientSecurity)}
            security = _TokenSecurity(**parts, token=identity.token)
        return Admin(
            properties["bootstrap.servers"],
            client_id=properties["client.id"],
            request_timeout_s=milliseconds(properties, "request.timeout.ms", 10_000) / 1000,
            api_timeout_s=milliseconds(properties, "default.api.timeout.ms", 15_000) / 1000,
            security=security,
        )

    def _producer_settings(self, identity: Identity) -> Translated:
        everything = _PRODUCER_DEFAULTS | self._client_id | dict(identity.properties(self._properties.producer))
        return producer_settings(everything)

    def _consumer_settings(self, identity: Identity, properties: Mapping[str, str]) -> Translated:
        everything = self._client_id | dict(identity.properties(self._properties.consumer)) | dict(properties)
        return consumer_settings(everything)


@dataclass(frozen=True, slots=True)
class _TokenSecurity(ClientSecurity):
    """Authenticates with the token of a caller."""

    token: str = field(default="", repr=False)

    def new_login(self, host: str) -> SaslClient | None:
        del host
        return OAuthBearerClient(self.token)


def _common(identity: Identity, on_error: OnError) -> dict[str, object]:
    common: dict[str, object] = {"log_level": 0, "error_cb": on_error}  # librdkafka also reports what it logs
    if identity.token is not None:
        common["oauth_cb"] = identity.token_source()
    return common
