"""The settings of the REST proxy, and which properties its clients get."""

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.rest.running import RestServer
from kaspar.rest.settings import RestConfig, RestSettings


def test_defaults_are_those_of_confluents_proxy() -> None:
    settings = RestSettings.of({})
    assert settings.listeners == ("http://127.0.0.1:8082",)
    assert settings.consumer_request_timeout_ms == 1_000
    assert settings.consumer_request_max_bytes == 64 * 1024 * 1024
    assert settings.consumer_instance_timeout_ms == 300_000
    assert settings.fetch_min_bytes == -1


def test_a_client_gets_what_is_behind_its_prefix_and_what_all_clients_get() -> None:
    config = RestConfig.of(
        {
            "bootstrap.servers": "PLAINTEXT://one:9092, SSL://two:9093",
            "client.retry.backoff.ms": "1",
            "producer.retry.backoff.ms": "2",
            "producer.acks": "1",
            "consumer.fetch.max.wait.ms": "3",
            "consumer.threads": "4",
            "admin.default.api.timeout.ms": "5",
        }
    )
    servers = {"bootstrap.servers": "one:9092,two:9093"}
    assert config.producer == servers | {"retry.backoff.ms": "2", "acks": "1"}
    assert config.consumer == servers | {"retry.backoff.ms": "1", "fetch.max.wait.ms": "3"}
    assert config.admin == servers | {"retry.backoff.ms": "1", "default.api.timeout.ms": "5"}
    assert config.settings.consumer_threads == 4


def test_secrets_are_not_shown() -> None:
    config = RestConfig.of({"client.sasl.jaas.config": "secret", "schema.registry.basic.auth.user.info": "secret"})
    assert "secret" not in repr(config)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"fetch.min.bytes": "-2"}, "Value must be at least -1"),
        ({"consumer.threads": "0"}, "Value must be at least 1, or -1"),
        ({"kaspar.propagate.identity": "true"}, "needs authentication.method"),
        ({"api.endpoints.blocklist": "api.v3.acls.*"}, "single endpoints cannot be disabled"),
        ({"producer.acks": "2"}, "acks"),
        ({"consumer.auto.offset.reset": "now"}, "auto.offset.reset"),
        ({"producer.max.block.ms": "soon"}, "max.block.ms"),
        ({"admin.request.timeout.ms": "soon"}, "request.timeout.ms"),
        ({"bootstrap.servers": "kafka"}, "not host:port"),
        ({"client.security.protocol": "SASL_SSL"}, "sasl.jaas.config is required"),
    ],
)
def test_what_cannot_be_used_stops_the_start(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidSetting, match=sentence):
        RestServer(values)


def test_callers_can_be_passed_on_only_over_sasl() -> None:
    values = {
        "kaspar.propagate.identity": "true",
        "authentication.method": "BASIC",
        "kaspar.http.credentials.file": "users",
    }
    with pytest.raises(InvalidSetting, match=r"client\.security\.protocol=SASL_SSL"):
        RestServer(values)
    with pytest.raises(InvalidSetting, match="Invalid value GSSAPI"):
        RestServer({**values, "client.security.protocol": "SASL_SSL", "client.sasl.mechanism": "GSSAPI"})
    RestServer({**values, "client.security.protocol": "SASL_SSL"})


def test_settings_without_effect_and_unknown_ones_are_reported() -> None:
    warnings = RestSettings.warnings_about(
        {"producer.threads": "9", "client.anything": "1", "consumer.anything": "1", "fetch.min.byte": "1"}
    )
    assert warnings == [
        "producer.threads has no effect: Requests share a producer and need no threads.",
        "fetch.min.byte is not a known setting and has no effect. Did you mean fetch.min.bytes?",
    ]
