"""How a registry is reached, by Confluent's properties."""

import pickle

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.serialization.registry_config import RegistryConfig, TokenIssuer, registry_config

URL = {"schema.registry.url": "http://one:8081"}
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="secret";'


def config(**properties: str) -> RegistryConfig:
    """`_` in a name stands for a dot."""
    return registry_config({**URL, **{name.replace("_", "."): value for name, value in properties.items()}})


def test_several_urls() -> None:
    found = registry_config({"schema.registry.url": "http://one:8081/, https://two/base/ ,"})
    assert found.urls == ("http://one:8081", "https://two/base")


def test_credentials_of_the_url_do_not_stay_in_it() -> None:
    found = registry_config({"schema.registry.url": "http://ada:s%40cret@one:8081,http://two:8081"})
    assert found.urls == ("http://one:8081", "http://two:8081")
    assert found.credentials == (("ada", "s@cret"), None)


@pytest.mark.parametrize("prefix", ["", "schema_registry_"])
def test_credentials_of_user_info(prefix: str) -> None:
    properties = {"basic_auth_credentials_source": "USER_INFO", "basic_auth_user_info": "ada:se:cret"}
    found = config(**{prefix + name: value for name, value in properties.items()})
    assert found.credentials == (("ada", "se:cret"),)


def test_credentials_of_the_kafka_client() -> None:
    found = config(basic_auth_credentials_source="SASL_INHERIT", sasl_jaas_config=LOGIN)
    assert found.credentials == (("ada", "secret"),)


def test_bearer_token() -> None:
    assert config(bearer_auth_credentials_source="STATIC_TOKEN", bearer_auth_token="abc").token == "abc"


def test_tokens_of_an_issuer() -> None:
    found = config(
        bearer_auth_credentials_source="OAUTHBEARER",
        bearer_auth_issuer_endpoint_url="https://issuer/token",
        bearer_auth_client_id="me",
        bearer_auth_client_secret="secret",
        bearer_auth_scope="all",
        bearer_auth_logical_cluster="lsrc-1",
        bearer_auth_identity_pool_id="pool-1",
    )
    assert found.issuer == TokenIssuer("https://issuer/token", "me", "secret", "all")
    assert dict(found.headers) == {"target-sr-cluster": "lsrc-1", "Confluent-Identity-Pool-Id": "pool-1"}


def test_tls_by_kafkas_names() -> None:
    found = registry_config({**URL, "schema.registry.ssl.truststore.location": "/ca.pem", "ssl.other": "x"})
    assert found.tls == (("ssl.truststore.location", "/ca.pem"),)


def test_latest_version_may_be_kept_for_ever() -> None:
    assert config(latest_cache_ttl_sec="-1").latest_ttl_s == float("inf")
    assert config(latest_cache_ttl_sec="0").latest_ttl_s == 0


def test_url_of_a_mock() -> None:
    assert registry_config({"schema.registry.url": "mock://my-test"}).mock_scope == "my-test"
    assert config().mock_scope is None


def test_secrets_are_not_printed_and_everything_is_pickled() -> None:
    found = config(basic_auth_credentials_source="USER_INFO", basic_auth_user_info="ada:secret")
    assert "secret" not in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"schema.registry.url": ""}, "Missing schema registry url!"),
        ({"schema.registry.url": "ada:secret@one"}, "Invalid value one for"),
        ({"schema.registry.url": "http://one:port"}, "is no URL"),
        ({"max.retries": "-1"}, "at least 0"),
        ({"http.read.timeout.ms": "soon"}, "at least 1"),
        ({"basic.auth.credentials.source": "HERE"}, "Invalid value HERE"),
        ({"basic.auth.credentials.source": "USER_INFO"}, "basic.auth.user.info is required"),
        ({"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "ada"}, "a colon between them"),
        ({"bearer.auth.credentials.source": "CUSTOM"}, "Invalid value CUSTOM"),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN"}, "bearer.auth.token is required"),
        ({"bearer.auth.credentials.source": "OAUTHBEARER"}, "bearer.auth.issuer.endpoint.url is required"),
        ({"proxy.host": "proxy"}, "proxy.port"),
    ],
)
def test_wrong_properties_are_refused(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        registry_config({**URL, **properties})
    assert sentence in str(caught.value)
    assert "secret" not in str(caught.value)
