"""`security.protocol`, `ssl.*` and `sasl.*` as librdkafka has them: no less protection than in Java's clients."""

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kaspar.base.errors import InvalidSetting
from kaspar.security.certificates import CertificateAuthority
from kaspar.tools.librdkafka import producer_settings

STORES = Path(__file__).parents[2] / "security" / "stores"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"


def translate(**properties: str) -> dict[str, object]:
    """`_` in a name stands for a dot. librdkafka has to accept what comes out."""
    given = {name.replace("_", "."): value for name, value in properties.items()}
    settings = producer_settings({"bootstrap.servers": "127.0.0.1:1", **given}).settings
    Producer({**settings, "log_level": 0})
    return settings


def sasl(mechanism: str, module: str, **more: str) -> dict[str, object]:
    return translate(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=f"{module};", **more
    )


def test_java_key_stores_become_pem_in_memory() -> None:
    settings = translate(
        security_protocol="SSL",
        ssl_keystore_location=str(STORES / "server.jks"),
        ssl_keystore_password="storepass",
        ssl_key_password="keypass",
        ssl_truststore_location=str(STORES / "trust.p12"),
        ssl_truststore_password="storepass",
    )
    assert str(settings["ssl.key.pem"]).startswith("-----BEGIN PRIVATE KEY-----")
    assert str(settings["ssl.certificate.pem"]).startswith("-----BEGIN CERTIFICATE-----")
    assert str(settings["ssl.ca.pem"]).startswith("-----BEGIN CERTIFICATE-----")
    assert settings["ssl.endpoint.identification.algorithm"] == "https"


def test_pem_files_and_no_check_of_host_names(tmp_path: Path) -> None:
    authority = CertificateAuthority.new()
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    settings = translate(
        security_protocol="ssl",
        ssl_truststore_type="PEM",
        ssl_truststore_location=str(tmp_path / "ca.pem"),
        ssl_endpoint_identification_algorithm="",
        ssl_cipher_suites="TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    )
    assert str(settings["ssl.ca.pem"]).split() == authority.certificate.decode().split()
    assert settings["ssl.endpoint.identification.algorithm"] == "none"
    assert settings["ssl.cipher.suites"] == "ECDHE-RSA-AES256-GCM-SHA384"


def test_users_and_passwords() -> None:
    settings = sasl("PLAIN", f'{PLAIN_MODULE} required username="alice" password="secret"')
    assert (settings["sasl.username"], settings["sasl.password"]) == ("alice", "secret")
    settings = sasl("SCRAM-SHA-512", f'{SCRAM_MODULE} required username="bob" password="secret"')
    assert (settings["sasl.mechanism"], settings["sasl.username"]) == ("SCRAM-SHA-512", "bob")


def test_unsecured_bearer_token() -> None:
    settings = sasl(
        "OAUTHBEARER",
        f'{BEARER_MODULE} required unsecuredLoginStringClaim_sub="alice" unsecuredLoginExtension_team="red"',
    )
    new_token = settings["oauth_cb"]
    assert callable(new_token)
    text, expires_s, principal, extensions = new_token("")
    assert text.count(".") == 2
    assert expires_s > time.time()
    assert (principal, extensions) == ("alice", {"team": "red"})


def test_bearer_token_of_a_file_is_read_again_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    settings = sasl("OAUTHBEARER", f"{BEARER_MODULE} required", sasl_oauthbearer_token_endpoint_url=file.as_uri())
    new_token = settings["oauth_cb"]
    assert callable(new_token)
    assert new_token("")[0] == "first"
    file.write_text("second\n")
    assert new_token("")[0] == "second"


def test_token_server() -> None:
    settings = sasl(
        "OAUTHBEARER",
        f'{BEARER_MODULE} required clientId="shop" clientSecret="secret" scope="orders"',
        sasl_oauthbearer_token_endpoint_url="http://127.0.0.1:1/token",
    )
    assert settings["sasl.oauthbearer.method"] == "oidc"
    assert (settings["sasl.oauthbearer.client.id"], settings["sasl.oauthbearer.scope"]) == ("shop", "orders")


def kerberos(options: str) -> dict[str, object]:
    """librdkafka of confluent-kafka's wheels has no Kerberos, so nothing is made of them here."""
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": f"{KERBEROS_MODULE} required {options};",
    }
    settings = producer_settings(properties).settings
    assert (settings["sasl.mechanism"], settings["sasl.kerberos.service.name"]) == ("GSSAPI", "kafka")
    return settings


def test_kerberos_with_the_tickets_of_a_cache() -> None:
    settings = kerberos("useTicketCache=true")
    assert settings["sasl.kerberos.min.time.before.relogin"] == 0  # kinit is not run


def test_kerberos_with_a_keytab() -> None:
    settings = kerberos('useKeyTab=true keyTab="/etc/a.keytab" principal="a@EXAMPLE.COM"')
    assert settings["sasl.kerberos.keytab"] == "/etc/a.keytab"
    assert settings["sasl.kerberos.principal"] == "a@EXAMPLE.COM"


WRONG = [
    ({"security.protocol": "TLS"}, "String must be one of (case insensitive): PLAINTEXT, SSL"),
    ({"security.protocol": "SSL", "ssl.truststore.location": "/nowhere"}, "ssl.truststore.location /nowhere"),
    ({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.3"}, "librdkafka always accepts TLSv1.2"),
    ({"security.protocol": "SASL_SSL"}, "sasl.jaas.config is required for GSSAPI"),
    ({"security.protocol": "SASL_SSL", "sasl.mechanism": "DIGEST"}, "Invalid value DIGEST"),
    (
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{SCRAM_MODULE} required username="id" password="hmac" tokenauth="true";',
        },
        "librdkafka cannot log in with a delegation token",
    ),
    (
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{BEARER_MODULE} required;",
            "sasl.oauthbearer.token.endpoint.url": "https://example.com/token",
        },
        "needs sasl.oauthbearer.client.credentials.client.id",
    ),
]


@pytest.mark.parametrize(("properties", "sentence"), WRONG)
def test_what_cannot_be_done_is_a_sentence(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        producer_settings(properties)
    assert sentence in str(raised.value)


def test_without_security_protocol_key_stores_are_not_read() -> None:
    settings = producer_settings({"ssl.truststore.location": "/nowhere"})
    assert settings.warnings == ()
    assert not [name for name in settings.settings if name.startswith("ssl.")]
