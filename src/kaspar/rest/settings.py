"""The settings of the REST proxy, with the names of Confluent's, and the properties of its Kafka clients.

A client's properties are those with the prefix `client.` and, with precedence, `producer.`, `consumer.` or `admin.`:
`client.security.protocol`, `producer.acks`. They are the properties of the Java clients.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self
from urllib.parse import urlsplit

from kaspar.base.errors import InvalidSetting
from kaspar.callers.settings import IdentitySettings, properties_behind, without_protocols
from kaspar.config.checks import Check, at_least, between
from kaspar.config.declaration import Importance, Settings, setting
from kaspar.config.kinds import BOOLEAN, INT, LIST, LONG, STRING
from kaspar.config.reasons import NO_PLUGINS
from kaspar.config.units import MIB
from kaspar.web.settings import WebSettings, listeners_setting

FETCH_MIN_BYTES: Final = between(-1, 10_000_000)
_NO_SIMPLE_CONSUMERS: Final = "Offsets and metadata are requested over shared connections."
_ADMIN_TIMEOUT_MS: Final = 15_000


def _threads_problem(threads: int) -> str | None:
    return None if threads == -1 or threads >= 1 else "Value must be at least 1, or -1"


class ProxySettings(Settings):
    id: str = setting(
        STRING,
        "",
        importance=Importance.HIGH,
        doc="Part of the generated names of consumer instances, to distinguish several proxies.",
    )
    bootstrap_servers: str = setting(
        STRING,
        "localhost:9092",
        importance=Importance.HIGH,
        doc="Brokers of the cluster: `host:port`, separated by commas.",
    )
    schema_registry_url: tuple[str, ...] = setting(
        LIST,
        ("http://localhost:8081",),
        importance=Importance.HIGH,
        doc="The URL of the schema registry, for records in Avro, JSON Schema and Protobuf.",
    )
    host_name: str = setting(STRING, "", doc="The host in the URLs of responses. Empty uses the host of the request.")
    advertised_listeners: tuple[str, ...] = setting(
        LIST,
        (),
        doc="The addresses in the URLs of responses, such as `https://proxy.example.org:443`: the first with the "
        "scheme of the request is used. Takes precedence over `host.name`.",
    )
    confluent_resource_name_authority: str = setting(
        STRING,
        "",
        importance=Importance.LOW,
        doc="The authority in the names of resources of version 3: with `example.org` they begin with "
        "`crn://example.org/`.",
    )
    api_v2_enable: bool = setting(BOOLEAN, True, importance=Importance.LOW, doc="Whether version 2 is served.")
    api_endpoints_blocklist: tuple[str, ...] = setting(
        LIST,
        (),
        importance=Importance.LOW,
        doc="Must be empty: single endpoints cannot be disabled, and a list without effect would be misleading. Use "
        "the ACLs of the cluster.",
    )
    api_v3_enable: bool = setting(BOOLEAN, True, importance=Importance.LOW, doc="Whether version 3 is served.")


class ProducingSettings(Settings):
    kaspar_producer_waiting_requests: int = setting(
        INT,
        100,
        at_least(0),
        doc="The maximum number of requests that wait for space in a producer's buffer (`producer.buffer.memory`), "
        "each for at most `producer.max.block.ms`. Further ones get the status 429.",
    )
    kaspar_producer_request_bytes: int = setting(
        LONG,
        128 * MIB,
        at_least(1),
        doc="The maximum total size of the bodies of all produce requests in progress. Further ones get the status "
        "429.",
    )
    kaspar_register_any_subject: bool = setting(
        BOOLEAN,
        False,
        doc="Whether requests of version 3 may register schemas under subjects that they name (`subject`, or "
        "`subject_name_strategy` of RECORD_NAME), although callers have identities of their own "
        "(`kaspar.propagate.identity`). The registry sees the proxy's credentials, not the caller's.",
    )
    api_v3_produce_batch_max_entries: int = setting(
        INT, 10, at_least(1), doc="The maximum number of records in a request to `records:batch` of version 3."
    )
    producer_threads: int = setting(
        INT, 5, not_honoured="Requests share a producer and need no threads.", doc="Threads that produce."
    )


class ConsumingSettings(Settings):
    consumer_request_timeout_ms: int = setting(
        INT, 1_000, at_least(0), doc="The maximum time that a request for records waits for more of them."
    )
    consumer_request_max_bytes: int = setting(
        LONG,
        64 * MIB,
        at_least(0),
        doc="The maximum number of bytes of keys and values in a response; a single record may be larger.",
    )
    fetch_min_bytes: int = setting(
        INT,
        -1,
        FETCH_MIN_BYTES,
        importance=Importance.LOW,
        doc="A request for records returns once it has more bytes than this; -1 waits for the timeout.",
    )
    consumer_instance_timeout_ms: int = setting(
        INT, 300_000, at_least(1), importance=Importance.LOW, doc="An instance that is unused for this long is deleted."
    )
    consumer_threads: int = setting(
        INT,
        50,
        Check(_threads_problem, "1 or more, or -1"),
        doc="The maximum number of threads for consumer instances; -1 is one per instance. Requests beyond the "
        "number of threads take turns.",
    )
    consumer_iterator_backoff_ms: int = setting(
        INT,
        50,
        at_least(1),
        importance=Importance.LOW,
        doc="How long one turn of a request waits for records, or pauses where all threads are busy.",
    )
    consumer_iterator_timeout_ms: int = setting(
        INT, 1, not_honoured="`consumer.iterator.backoff.ms` is the time of one turn.", doc="How long a read blocks."
    )
    kaspar_consumer_instances: int = setting(
        INT,
        250,
        at_least(1),
        doc="The maximum number of consumer instances. Further ones get the status 429. An instance has some "
        "threads, connections and up to 8 MiB of fetched records.",
    )


class FormerSettings(Settings):
    """Settings that Confluent's proxy has or had, and that have no effect here."""

    zookeeper_connect: str = setting(STRING, "", not_honoured="Version 1 is not served.", doc="ZooKeeper's address.")
    simpleconsumer_pool_size_max: int = setting(
        INT, 25, not_honoured=_NO_SIMPLE_CONSUMERS, doc="The maximum number of simple consumers per broker."
    )
    simpleconsumer_pool_timeout_ms: int = setting(
        INT, 1_000, not_honoured=_NO_SIMPLE_CONSUMERS, doc="How long to wait for a simple consumer."
    )
    client_timeout_ms: int = setting(
        INT,
        500,
        not_honoured="`client.default.api.timeout.ms` limits calls.",
        doc="The timeout of a metadata operation.",
    )
    client_init_timeout_ms: int = setting(
        INT, 60_000, not_honoured="The proxy starts without its brokers.", doc="How long the start may take."
    )
    client_zk_session_timeout_ms: int = setting(
        INT, 30_000, not_honoured="Version 1 is not served.", doc="The timeout of the session with ZooKeeper."
    )
    kafka_rest_resource_extension_class: tuple[str, ...] = setting(
        LIST, (), not_honoured=NO_PLUGINS, doc="Java plug-ins."
    )


class RestSettings(ProxySettings, ProducingSettings, ConsumingSettings, IdentitySettings, FormerSettings, WebSettings):
    listeners: tuple[str, ...] = listeners_setting(8082)
    kaspar_http_max_body_bytes: int = setting(
        INT, 16 * MIB, at_least(1), doc="The maximum size of a request body. A larger one gets the status 413."
    )
    passed_on = ("client.", "producer.", "consumer.", "admin.", "schema.registry.")

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        advertised = (urlsplit(each).hostname or "" for each in self.advertised_listeners)
        return *super().allowed_hosts, self.host_name, *advertised

    def check_together(self) -> None:
        super().check_together()
        if self.api_endpoints_blocklist:
            raise InvalidSetting("api.endpoints.blocklist is not supported: single endpoints cannot be disabled")
        if self.kaspar_propagate_identity and self.authentication_method.upper() == "NONE":
            raise InvalidSetting("kaspar.propagate.identity=true needs authentication.method=BASIC or BEARER")


@dataclass(frozen=True, slots=True)
class RestConfig:
    """The settings, and the properties of each kind of client, which may contain secrets."""

    settings: RestSettings
    producer: Mapping[str, str] = field(repr=False)
    consumer: Mapping[str, str] = field(repr=False)
    admin: Mapping[str, str] = field(repr=False)
    registry: Mapping[str, str] = field(repr=False)
    """`schema.registry.url` and the other properties of the registry client, with their prefix."""

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        """Raises InvalidSetting with a sentence."""
        settings = RestSettings.of(values)
        properties = partial(properties_behind, values, declared=RestSettings.declared)
        servers = {"bootstrap.servers": without_protocols(settings.bootstrap_servers)}
        timeouts = {"default.api.timeout.ms": str(_ADMIN_TIMEOUT_MS)}
        return cls(
            settings,
            producer=servers | properties("client.", "producer."),
            consumer=servers | properties("client.", "consumer."),
            admin=servers | timeouts | properties("client.", "admin."),
            registry={"schema.registry.url": ",".join(settings.schema_registry_url)}
            | {name: value for name, value in values.items() if name.startswith("schema.registry.")},
        )
