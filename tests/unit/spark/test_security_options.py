"""Security options reach the wire client or are refused, and their values are shown nowhere."""

import pickle
from pathlib import Path

import pytest

from kaspar.security.certificates import CertificateAuthority
from kaspar.spark.kafka_settings import connection_settings
from kaspar.spark.option_names import READ_OPTIONS, WRITE_OPTIONS
from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.security_options import REFUSED, SECURITY_OPTIONS, InvalidOption, SecurityOptions
from kaspar.spark.writing.options import WriteOptions

SECRET = "hunter2"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LOG_IN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": f'{SCRAM} required username="etl" password="{SECRET}";',
}


def options_of(settings: dict[str, str], **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": "localhost:1", **{f"kafka.{k}": v for k, v in settings.items()}, **more}


def test_they_are_those_of_reads_and_writes() -> None:
    assert set(SECURITY_OPTIONS) <= set(READ_OPTIONS) & set(WRITE_OPTIONS)


def test_a_client_of_every_process_gets_them(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(CertificateAuthority.new().certificate)
    settings = {
        **LOG_IN,
        "security.protocol": "sasl_ssl",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(file),
    }
    parsed = connection_settings({"bootstrap.servers": "localhost:1", **settings})
    with pickle.loads(pickle.dumps(parsed)).client() as client:
        assert client.security.protocol == "SASL_SSL"
        assert client.security.tls.check_hostname
        assert client.security.login.options == {"username": "etl", "password": SECRET}


def test_without_them_connections_are_in_the_clear() -> None:
    assert SecurityOptions.of({}).load() is None
    assert SecurityOptions.of({"security.protocol": "plaintext"}) == SecurityOptions()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"security.protocol": "TLS"}, "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (
            {"sasl.jaas.config": SECRET},
            "no effect with kafka.security.protocol = PLAINTEXT: set that to SASL_PLAINTEXT or",
        ),
        (
            {"ssl.truststore.location": "/x"},
            "no effect with kafka.security.protocol = PLAINTEXT: set that to SSL or SASL_SSL",
        ),
        ({"security.protocol": "SSL", "sasl.mechanism": "PLAIN"}, "kafka.sasl.mechanism' has no effect"),
        ({**LOG_IN, "ssl.key.password": SECRET}, "kafka.ssl.key.password' has no effect"),
        ({**LOG_IN, "sasl.mechanism": "GSSAPI"}, "kafka.sasl.mechanism' must be one of PLAIN, "),
        ({"security.protocol": "SASL_SSL"}, "kafka.sasl.mechanism' must be one of"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "kafka.sasl.jaas.config' must be given"),
        ({**LOG_IN, "sasl.oauthbearer.token.endpoint.url": "file:/t"}, "no effect with kafka.sasl.mechanism = SCRAM"),
        ({**LOG_IN, "sasl.oauthbearer.client.credentials.client.secret": SECRET}, "does not fetch tokens from servers"),
        ({**LOG_IN, "sasl.password": SECRET}, "part of kafka.sasl.jaas.config"),
        ({**LOG_IN, "sasl.made.up": SECRET}, "this client does not support it"),
        ({"security.protocol": "SSL", "ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----{SECRET}"}, "is not encrypted"),
        *(({**LOG_IN, name: SECRET}, f"Option 'kafka.{name}' is not supported: ") for name in REFUSED),
    ],
)
def test_what_cannot_be_honoured_is_refused_without_its_value(settings: dict[str, str], sentence: str) -> None:
    for parse in (
        lambda: ReadOptions.of(options_of(settings, subscribe="t")),
        lambda: WriteOptions.of(options_of(settings, topic="t")),
    ):
        with pytest.raises(InvalidOption) as refused:
            parse()
        assert sentence in str(refused.value)
        assert SECRET not in str(refused.value)


def test_files_that_cannot_be_used_are_named_by_the_machine_that_has_not_got_them() -> None:
    settings = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": "/nowhere/ca.pem"}
    parsed = connection_settings({"bootstrap.servers": "localhost:1", **settings})
    with pytest.raises(InvalidOption, match=r"cannot be used on .+: ssl.truststore.location /nowhere/ca.pem cannot"):
        parsed.client()


def test_no_value_is_part_of_a_repr() -> None:
    for parsed in (
        ReadOptions.of(options_of(LOG_IN, subscribe="t")),
        WriteOptions.of(options_of(LOG_IN, topic="t", guarantee="exactly-once")),
    ):
        assert SECRET not in repr(parsed) + str(parsed)
        assert hash(parsed.connection)
        assert SECRET not in repr(parsed.connection.client().security)
