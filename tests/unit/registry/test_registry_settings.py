"""The settings of the registry, with Confluent's names."""

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.registry.election.identity import Identity
from kaspar.registry.settings import RegistryConfig, RegistrySettings, bootstrap_servers
from kaspar.schemas.levels import CompatibilityLevel
from kaspar.web.hosting import HostedService


def settings(**values: str) -> RegistrySettings:
    return RegistryConfig.of({name.replace("_", "."): value for name, value in values.items()}).settings


def test_defaults_are_confluents() -> None:
    default = settings()
    assert default.listeners == ("http://127.0.0.1:8081",)
    assert default.kafkastore_topic == "_schemas"
    assert default.kafkastore_timeout_ms == 5_000
    assert default.topic_terms.replication_factor == 3
    assert default.group_terms.group_id == "schema-registry"
    assert (default.group_terms.session_timeout_ms, default.group_terms.heartbeat_interval_ms) == (10_000, 3_000)
    assert default.options("cluster").compatibility_level is CompatibilityLevel.BACKWARD


@pytest.mark.parametrize(
    ("values", "level"),
    [
        ({"schema_compatibility_level": "full_transitive"}, CompatibilityLevel.FULL_TRANSITIVE),
        ({"avro_compatibility_level": "none"}, CompatibilityLevel.NONE),
        ({"avro_compatibility_level": "none", "schema_compatibility_level": "full"}, CompatibilityLevel.NONE),
    ],
)
def test_compatibility_level_has_two_names(values: dict[str, str], level: CompatibilityLevel) -> None:
    assert settings(**values).options("").compatibility_level is level


def test_eligibility_has_two_names() -> None:
    assert not settings(leader_eligibility="false").is_eligible
    assert not settings(master_eligibility="false").is_eligible
    assert settings(leader_eligibility="false", master_eligibility="true").is_eligible


def test_servers_of_another_protocol_are_ignored() -> None:
    servers = ("PLAINTEXT://a:1", "SSL://b:2", "c:3", "[::1]:4")
    assert bootstrap_servers(servers, "PLAINTEXT") == "a:1,c:3,[::1]:4"
    assert bootstrap_servers(servers, "SSL") == "b:2,c:3,[::1]:4"
    with pytest.raises(InvalidSetting, match=r"no broker for kafkastore.security.protocol=SSL"):
        bootstrap_servers(("PLAINTEXT://a:1",), "SSL")


@pytest.mark.parametrize("server", ["a", "a:", ":9092", "http//a:1", "a:b", "PLAINTEXT://"])
def test_malformed_server_is_refused(server: str) -> None:
    with pytest.raises(InvalidSetting, match=r"kafkastore\.bootstrap\.servers contains"):
        bootstrap_servers((server,), "PLAINTEXT")


def test_properties_of_the_kafka_client_are_passed_on() -> None:
    config = RegistryConfig.of(
        {
            "kafkastore.security.protocol": "sasl_ssl",
            "kafkastore.sasl.mechanism": "PLAIN",
            "kafkastore.ssl.truststore.location": "/trust.jks",
            "kafkastore.topic": "schemas",
        }
    )
    assert config.client == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "ssl.truststore.location": "/trust.jks",
    }
    assert "trust" not in repr(config)


def test_ignored_settings_are_reported() -> None:
    warnings = RegistrySettings.warnings_about(
        {
            "schema.registry.resource.extension.class": "x.Y",
            "kafkastore.sasl.mechanism": "PLAIN",
            "kafkastore.topic": "t",
            "schema.compatibilty.level": "none",
            "kafkastore.bootstrap.servers": "PLAINTEXT://a:1, SSL://b:2,c:3",
        }
    )
    assert len(warnings) == 3
    assert warnings[2] == "SSL://b:2 is ignored: kafkastore.security.protocol is PLAINTEXT"
    assert "schema.registry.resource.extension.class has no effect" in warnings[0]
    assert "Did you mean schema.compatibility.level?" in warnings[1]


def test_heartbeats_must_be_more_frequent_than_the_session_is_long() -> None:
    with pytest.raises(InvalidSetting, match="must be less than"):
        settings(kafkagroup_session_timeout_ms="1000", kafkagroup_heartbeat_interval_ms="1000")


class TestIdentity:
    def test_is_that_of_the_listener(self) -> None:
        found = settings(listeners="http://127.0.0.1:0").identity(["http://127.0.0.1:4711"])
        assert found == Identity("http", "127.0.0.1", 4711)

    def test_has_a_name_where_the_listener_has_every_address(self) -> None:
        found = settings(listeners="http://0.0.0.0:8081").identity(["http://0.0.0.0:8081"])
        assert found.host not in ("", "0.0.0.0")
        named = settings(listeners="http://0.0.0.0:8081", host_name="sr-1", host_port="80")
        assert named.identity(["http://0.0.0.0:8081"]).url == "http://sr-1:80"

    def test_is_that_of_the_listener_with_the_protocol_between_instances(self) -> None:
        both = {"listeners": "http://h:1,https://h:2", "ssl_keystore_location": "/k"}
        bound = ["http://h:1", "https://h:2"]
        assert settings(**both).identity(bound).url == "http://h:1"
        assert settings(**both, inter_instance_protocol="https").identity(bound).url == "https://h:2"
        assert settings(**both, schema_registry_inter_instance_protocol="https").identity(bound).url == "https://h:2"

    def test_is_that_of_the_named_listener(self) -> None:
        named = settings(
            listeners="http://h:1,INTERNAL://h:2",
            listener_protocol_map="INTERNAL:http",
            inter_instance_listener_name="INTERNAL",
        )
        assert named.identity(["http://h:1", "http://h:2"]).port == 2

    def test_needs_a_listener(self) -> None:
        with pytest.raises(InvalidSetting, match="no listener has this scheme"):
            settings(inter_instance_protocol="https").identity(["http://h:1"])
        with pytest.raises(InvalidSetting, match="no listener has this name"):
            settings(inter_instance_listener_name="x").identity(["http://127.0.0.1:8081"])


def test_registry_is_a_hosted_service() -> None:
    from kaspar.registry.running import RegistryServer

    service: HostedService = RegistryServer(RegistryConfig.of({"listeners": "http://127.0.0.1:0"}))
    service.bound(["http://127.0.0.1:4711"])
    assert service.name == "registry"
    assert service.error_form(413, "too large").content == b'{"error_code":413,"message":"too large"}'


def test_almost_equal_names_behind_the_prefix_of_the_client_are_reported() -> None:
    """They are passed on, and the client would use its default without a word."""
    assert RegistrySettings.warnings_about({"kafkastore.bootstrap.server": "a:1", "kafkastore.client.id": "x"}) == [
        "kafkastore.bootstrap.server is passed to the client unchanged. Did you mean kafkastore.bootstrap.servers?"
    ]
