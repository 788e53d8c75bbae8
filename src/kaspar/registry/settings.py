"""The settings of the registry, with the names of Confluent's. Settings with the prefix `kafkastore.` that are not
declared here are properties of its Kafka client: `kafkastore.ssl.truststore.location`, `kafkastore.sasl.jaas.config`.
"""

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from kaspar.base.errors import InvalidSetting
from kaspar.config.checks import at_least, one_of_in_any_case
from kaspar.config.declaration import Importance, Settings, setting
from kaspar.config.kinds import BOOLEAN, INT, LIST, PASSWORD, STRING
from kaspar.config.reasons import NO_PLUGINS
from kaspar.config.units import MIB, MINUTE_MS
from kaspar.registry.election.identity import Identity
from kaspar.registry.election.membership import GroupTerms
from kaspar.registry.log.topic import TopicTerms
from kaspar.registry.options import RegistryOptions, SearchLimits
from kaspar.schemas.levels import CompatibilityLevel
from kaspar.security.client import PROTOCOLS
from kaspar.web.listeners import parse_listeners
from kaspar.web.settings import WebSettings, listeners_setting

_LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
_STORE: Final = "kafkastore."
_SERVER: Final = re.compile(r"(?:([A-Za-z_]+)://)?(\[[0-9A-Fa-f:.%]+\]|[^:/\[\],\s]+):([0-9]{1,5})")
_ANY_ADDRESS: Final = ("", "0.0.0.0", "::")
_NO_PERSISTENCE: Final = "The schemas are kept in memory and read from the topic at each start."
_NO_ENCODERS: Final = "Rules are stored and not executed."


def _limit(default: int, doc: str) -> int:
    return setting(INT, default, at_least(1), importance=Importance.LOW, doc=doc)


class StoreSettings(Settings):
    """The topic, and the cluster that has it."""

    kafkastore_bootstrap_servers: tuple[str, ...] = setting(
        LIST,
        ("localhost:9092",),
        importance=Importance.HIGH,
        doc="Brokers of the cluster that holds the schemas: `host:port` or `PLAINTEXT://host:port`, separated by "
        "commas. Entries with a protocol other than `kafkastore.security.protocol` are ignored.",
    )
    kafkastore_topic: str = setting(
        STRING, "_schemas", importance=Importance.HIGH, doc="The topic that holds the schemas: one compacted partition."
    )
    kafkastore_topic_replication_factor: int = setting(
        INT,
        3,
        at_least(1),
        importance=Importance.HIGH,
        doc="The number of replicas of the topic when it is created, limited by the number of brokers.",
    )
    kafkastore_topic_skip_validation: bool = setting(
        BOOLEAN, False, doc="Whether the topic is used as is, without validating or creating it."
    )
    kafkastore_timeout_ms: int = setting(
        INT,
        5_000,
        at_least(1),
        doc="How long a request waits for the topic to be written and read back. Confluent's default is 500, which a "
        "busy disk or an election can exceed.",
    )
    kafkastore_init_timeout_ms: int = setting(
        INT, MINUTE_MS, at_least(1), doc="How long the start may take, including the wait for the brokers."
    )
    kafkastore_security_protocol: str = setting(
        STRING, "PLAINTEXT", one_of_in_any_case(*PROTOCOLS), doc="The security protocol for the brokers."
    )
    kafkastore_write_max_retries: int = setting(
        INT, 5, not_honoured="Writes are fenced and cannot conflict.", doc="How often a conflicting write is retried."
    )
    kafkastore_group_id: str = setting(
        STRING, "", not_honoured="The topic is read without a group.", doc="The group that reads the topic."
    )
    kafkastore_connection_url: str = setting(
        STRING, "", not_honoured="Brokers are found by kafkastore.bootstrap.servers.", doc="ZooKeeper's address."
    )
    kafkastore_checkpoint_dir: str = setting(STRING, "/tmp", not_honoured=_NO_PERSISTENCE, doc="The file for offsets.")
    kafkastore_checkpoint_version: int = setting(INT, 0, not_honoured=_NO_PERSISTENCE, doc="The format of that file.")
    kafkastore_update_handlers: tuple[str, ...] = setting(LIST, (), not_honoured=NO_PLUGINS, doc="Java plug-ins.")


class ElectionSettings(Settings):
    """The group of the instances that share the topic."""

    schema_registry_group_id: str = setting(
        STRING,
        "schema-registry",
        doc="The group in which the instances elect their leader. Instances that share a topic share the group.",
    )
    leader_eligibility: bool = setting(BOOLEAN, True, doc="Whether this instance may become the leader.")
    master_eligibility: bool | None = setting(
        BOOLEAN,
        None,
        importance=Importance.LOW,
        doc="The deprecated name of `leader.eligibility`; takes precedence over it.",
    )
    leader_election_sticky: bool = setting(
        BOOLEAN,
        True,
        doc="Whether the leader stays leader when another instance joins. Otherwise the eligible instance with the "
        "smallest URL leads, and there is no leader during a rebalance. Confluent's default is `false`.",
    )
    leader_election_delay: bool = setting(
        BOOLEAN, False, not_honoured="An instance joins the group after its first replay.", doc="Whether to join late."
    )
    leader_connect_timeout_ms: int = setting(
        INT, MINUTE_MS, at_least(1), doc="The connect timeout for forwarding a request to the leader."
    )
    leader_read_timeout_ms: int = setting(
        INT, MINUTE_MS, at_least(1), doc="The response timeout for forwarding a request to the leader."
    )
    kafkagroup_session_timeout_ms: int = setting(
        INT, 10_000, at_least(1), doc="An instance that sends no heartbeat for this long is removed from the group."
    )
    kafkagroup_heartbeat_interval_ms: int = setting(
        INT, 3_000, at_least(1), doc="How often an instance sends a heartbeat to the group's coordinator."
    )
    kafkagroup_rebalance_timeout_ms: int = setting(
        INT, 5 * MINUTE_MS, at_least(1), doc="How long an instance may take to join an election."
    )


class InstanceSettings(Settings):
    """The address of this instance for other instances."""

    host_name: str = setting(
        STRING,
        "",
        importance=Importance.HIGH,
        doc="The host by which other instances reach this one. Empty uses the address of the listener, or the "
        "machine's host name if it listens on every address.",
    )
    host_port: int | None = setting(
        INT, None, doc="The port by which other instances reach this one. By default that of the listener."
    )
    inter_instance_protocol: str = setting(
        STRING,
        "http",
        one_of_in_any_case("http", "https"),
        importance=Importance.LOW,
        doc="The scheme of the listener that other instances use. With `https`, this instance uses its `ssl.` "
        "settings also as a client.",
    )
    schema_registry_inter_instance_protocol: str = setting(
        STRING,
        "",
        importance=Importance.LOW,
        doc="The deprecated name of `inter.instance.protocol`; takes precedence over it.",
    )
    inter_instance_listener_name: str = setting(
        STRING,
        "",
        importance=Importance.LOW,
        doc="The name of the listener that other instances use; takes precedence over `inter.instance.protocol`.",
    )
    inter_instance_headers_whitelist: tuple[str, ...] = setting(
        LIST,
        (),
        importance=Importance.LOW,
        doc="Request headers that are forwarded to the leader, in addition to Content-Type, Accept, Authorization "
        "and X-Request-ID.",
    )


class SchemaSettings(Settings):
    """How the registry handles schemas."""

    schema_compatibility_level: str = setting(
        STRING,
        "BACKWARD",
        one_of_in_any_case(*_LEVELS),
        importance=Importance.HIGH,
        doc="The compatibility level of the registry until it is set through the API.",
    )
    avro_compatibility_level: str = setting(
        STRING,
        "",
        one_of_in_any_case("", *_LEVELS),
        importance=Importance.LOW,
        doc="The deprecated name of `schema.compatibility.level`; takes precedence over it.",
    )
    mode_mutability: bool = setting(BOOLEAN, True, doc="Whether requests may change the mode.")
    schema_validate_fields: bool = setting(BOOLEAN, False, doc="Whether reserved fields are validated by default.")
    schema_search_default_limit: int = _limit(1_000, "The default number of schemas in a list.")
    schema_search_max_limit: int = _limit(1_000, "The maximum number of schemas in a list.")
    subject_search_default_limit: int = _limit(20_000, "The default number of subjects in a list.")
    subject_search_max_limit: int = _limit(20_000, "The maximum number of subjects in a list.")
    subject_version_search_default_limit: int = _limit(20_000, "The default number of versions in a list.")
    subject_version_search_max_limit: int = _limit(20_000, "The maximum number of versions in a list.")
    context_search_default_limit: int = _limit(20_000, "The default number of contexts in a list.")
    context_search_max_limit: int = _limit(20_000, "The maximum number of contexts in a list.")
    schema_cache_size: int = setting(
        INT, 1_000, not_honoured="The number of parsed schemas that are kept is fixed.", doc="How many are kept."
    )
    schema_cache_expiry_secs: int = setting(
        INT,
        300,
        not_honoured="Parsed schemas are evicted by number, not by age.",
        doc="How long parsed schemas are kept.",
    )
    schema_canonicalize_on_consume: tuple[str, ...] = setting(
        LIST, (), not_honoured="Schemas are stored as they were written.", doc="Types that are canonicalized when read."
    )
    schema_providers: tuple[str, ...] = setting(LIST, (), not_honoured=NO_PLUGINS, doc="Java plug-ins.")
    kaspar_registry_authorization_file: str = setting(
        STRING,
        "",
        doc="A file of permissions by user, in the format of Karapace's `registry_authfile`. Empty allows "
        "authenticated users everything.",
    )


class FormerSettings(Settings):
    """Settings that Confluent's registry has, and that have no effect here."""

    schema_registry_resource_extension_class: tuple[str, ...] = setting(
        LIST, (), not_honoured=NO_PLUGINS, doc="Java plug-ins."
    )
    resource_extension_class: tuple[str, ...] = setting(LIST, (), not_honoured=NO_PLUGINS, doc="Java plug-ins.")
    resource_static_locations: tuple[str, ...] = setting(LIST, (), not_honoured=NO_PLUGINS, doc="Java resources.")
    metadata_encoder_secret: str | None = setting(PASSWORD, None, not_honoured=_NO_ENCODERS, doc="A secret for rules.")
    metadata_encoder_old_secret: str | None = setting(
        PASSWORD, None, not_honoured=_NO_ENCODERS, doc="The previous secret."
    )
    metadata_encoder_topic: str = setting(
        STRING, "_schema_encoders", not_honoured=_NO_ENCODERS, doc="The topic of encoders."
    )


class RegistrySettings(StoreSettings, ElectionSettings, InstanceSettings, SchemaSettings, FormerSettings, WebSettings):
    listeners: tuple[str, ...] = listeners_setting(8081)
    kaspar_http_max_body_bytes: int = setting(
        INT, 16 * MIB, at_least(1), doc="The maximum size of a request body. A larger one gets the status 413."
    )
    passed_on = (_STORE,)

    def check_together(self) -> None:
        super().check_together()
        if self.kafkagroup_heartbeat_interval_ms >= self.kafkagroup_session_timeout_ms:
            raise InvalidSetting("kafkagroup.heartbeat.interval.ms must be less than kafkagroup.session.timeout.ms")
        parse_listeners(self.listeners, self.listener_protocol_map)

    @classmethod
    def warnings_about(cls, values: Mapping[str, str]) -> list[str]:
        protocol = values.get("kafkastore.security.protocol", "PLAINTEXT").strip().upper()
        servers = [each.strip() for each in values.get("kafkastore.bootstrap.servers", "").split(",")]
        ignored = [each for each in servers if "://" in each and each.partition("://")[0].upper() != protocol]
        return [
            *super().warnings_about(values),
            *(f"{each} is ignored: kafkastore.security.protocol is {protocol}" for each in ignored),
        ]

    @property
    def compatibility_level(self) -> str:
        return (self.avro_compatibility_level or self.schema_compatibility_level).upper()

    @property
    def is_eligible(self) -> bool:
        return self.leader_eligibility if self.master_eligibility is None else self.master_eligibility

    def options(self, cluster_id: str) -> RegistryOptions:
        """The options of the service and the API. `cluster_id` is that of the Kafka cluster."""
        return RegistryOptions(
            compatibility_level=CompatibilityLevel(self.compatibility_level),
            mode_mutability=self.mode_mutability,
            validate_fields=self.schema_validate_fields,
            schema_search=SearchLimits(self.schema_search_default_limit, self.schema_search_max_limit),
            subject_search=SearchLimits(self.subject_search_default_limit, self.subject_search_max_limit),
            version_search=SearchLimits(
                self.subject_version_search_default_limit, self.subject_version_search_max_limit
            ),
            context_search=SearchLimits(self.context_search_default_limit, self.context_search_max_limit),
            max_body_bytes=self.kaspar_http_max_body_bytes,
            cluster_id=cluster_id,
            group_id=self.schema_registry_group_id,
        )

    @property
    def topic_terms(self) -> TopicTerms:
        return TopicTerms(
            self.kafkastore_topic, self.kafkastore_topic_replication_factor, self.kafkastore_topic_skip_validation
        )

    @property
    def group_terms(self) -> GroupTerms:
        return GroupTerms(
            self.schema_registry_group_id,
            session_timeout_ms=self.kafkagroup_session_timeout_ms,
            rebalance_timeout_ms=self.kafkagroup_rebalance_timeout_ms,
            heartbeat_interval_ms=self.kafkagroup_heartbeat_interval_ms,
            sticky=self.leader_election_sticky,
        )

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        return *super().allowed_hosts, self.host_name

    def identity(self, bound: Sequence[str]) -> Identity:
        """The identity of this instance. `bound` are the URLs of its listeners, in order. Raises InvalidSetting."""
        scheme, host, port = self._inter_instance_listener(bound)
        if self.host_name:
            host = self.host_name
        elif host in _ANY_ADDRESS:
            host = socket.getfqdn()
        return Identity(scheme, host, port if self.host_port is None else self.host_port, self.is_eligible)

    def _inter_instance_listener(self, bound: Sequence[str]) -> tuple[str, str, int]:
        addresses = parse_listeners(bound)
        if name := self.inter_instance_listener_name.lower():
            for text, address in zip(filter(None, self.listeners), addresses, strict=True):
                if text.partition("://")[0].lower() == name:
                    return address.scheme, address.host, address.port
            raise InvalidSetting(f"inter.instance.listener.name={name}: no listener has this name")
        protocol = (self.schema_registry_inter_instance_protocol or self.inter_instance_protocol).lower()
        for address in addresses:
            if address.scheme == protocol:
                return address.scheme, address.host, address.port
        raise InvalidSetting(f"inter.instance.protocol={protocol}: no listener has this scheme")


@dataclass(frozen=True, slots=True)
class RegistryConfig:
    """The settings, and the properties of the Kafka client, which may contain secrets."""

    settings: RegistrySettings
    bootstrap_servers: str
    """host:port,host:port"""
    client: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        """Raises InvalidSetting with a sentence."""
        settings = RegistrySettings.of(values)
        protocol = settings.kafkastore_security_protocol.upper()
        client = {
            name.removeprefix(_STORE): value
            for name, value in values.items()
            if name.startswith(_STORE) and name not in RegistrySettings.declared
        }
        servers = bootstrap_servers(settings.kafkastore_bootstrap_servers, protocol)
        return cls(settings, servers, client | {"security.protocol": protocol})


def bootstrap_servers(servers: Sequence[str], protocol: str) -> str:
    """The servers with this protocol or without one, as host:port. Raises InvalidSetting."""
    chosen = []
    for text in filter(None, servers):
        match = _SERVER.fullmatch(text)
        if match is None:
            raise InvalidSetting(
                f"kafkastore.bootstrap.servers contains {text!r}, which is not of the form host:port or "
                "PLAINTEXT://host:port"
            )
        if match[1] is not None and match[1].upper() != protocol:
            continue
        chosen.append(f"{match[2]}:{match[3]}")
    if not chosen:
        raise InvalidSetting(f"kafkastore.bootstrap.servers has no broker for kafkastore.security.protocol={protocol}")
    return ",".join(chosen)
