"""Keys and certificates out of PEM, PKCS #12 and JKS: the same ones, and a sentence where they cannot be read."""

import os
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from kaspar.base.errors import InvalidSetting
from kaspar.security.certificates import CertificateAuthority, Issued
from kaspar.security.cipher_suites import iana_name
from kaspar.security.key_stores import load_key_store, load_trust_store
from kaspar.security.tls import client_context, server_context

STORES = Path(__file__).with_name("stores")
"""Made by keytool: `server.jks` has a key (store password "storepass", key password "keypass"), the others trust it."""


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority.new()


@pytest.fixture(scope="module")
def issued(authority: CertificateAuthority) -> Issued:
    return authority.issue("broker", hosts=["localhost"])


def test_pem_text_and_pem_file_are_the_same(issued: Issued, tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(issued.key_and_chain)
    from_file = load_key_store({"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)})
    from_text = load_key_store(
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": issued.key.decode(),
            "ssl.keystore.certificate.chain": issued.certificate.decode(),
        }
    )
    assert from_file == from_text
    assert from_file is not None


def test_pkcs12_holds_the_key_and_its_chain(issued: Issued, tmp_path: Path) -> None:
    file = tmp_path / "key.p12"
    file.write_bytes(issued.pkcs12("secret"))
    for kind in ("PKCS12", "JKS"):  # as in Java, the first bytes decide
        settings = {
            "ssl.keystore.type": kind,
            "ssl.keystore.location": str(file),
            "ssl.keystore.password": "secret",
        }
        pair = load_key_store(settings)
        assert pair is not None
        assert pair.chain == (issued.certificate, issued.ca)
        assert pair.key == issued.key


def test_an_encrypted_key_needs_its_password(issued: Issued) -> None:
    key = serialization.load_pem_private_key(issued.key, None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"right"),
    ).decode()
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": encrypted,
        "ssl.keystore.certificate.chain": issued.certificate.decode(),
    }
    pair = load_key_store({**settings, "ssl.key.password": "right"})
    assert pair is not None
    assert pair.key == issued.key
    for wrong in ({}, {"ssl.key.password": "wrong"}):
        with pytest.raises(InvalidSetting) as refused:
            load_key_store(settings | wrong)
        assert "password" in str(refused.value)
        assert "wrong" not in str(refused.value)


def test_a_java_key_store_is_read_as_java_wrote_it() -> None:
    settings = {
        "ssl.keystore.location": str(STORES / "server.jks"),
        "ssl.keystore.password": "storepass",
        "ssl.key.password": "keypass",
    }
    pair = load_key_store(settings)
    assert pair is not None
    trusted = load_trust_store(
        {"ssl.truststore.location": str(STORES / "trust.jks"), "ssl.truststore.password": "storepass"}
    )
    assert trusted == (pair.certificate.public_bytes(serialization.Encoding.DER),)
    assert server_context(settings, "none").minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_trust_store_of_java_in_pkcs12() -> None:
    as_jks = {"ssl.truststore.location": str(STORES / "trust.jks"), "ssl.truststore.password": "storepass"}
    as_pkcs12 = {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(STORES / "trust.p12"),
        "ssl.truststore.password": "storepass",
    }
    assert load_trust_store(as_jks) == load_trust_store(as_pkcs12)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"ssl.keystore.password": "other"}, "tampered with, or its password is incorrect"),
        ({"ssl.key.password": "other"}, "the password of the private key is incorrect"),
        ({"ssl.keystore.location": "/does/not/exist"}, "cannot be read: No such file or directory"),
        ({"ssl.keystore.type": "BKS"}, "ssl.keystore.type: one of JKS, PKCS12, PEM is known"),
        ({"ssl.keystore.type": "PEM"}, "has no readable PEM certificate"),
        ({"ssl.keystore.key": "x"}, "need ssl.keystore.type=PEM and no location"),
    ],
)
def test_what_cannot_be_read_is_said(changes: dict[str, str], part: str) -> None:
    settings = {
        "ssl.keystore.location": str(STORES / "server.jks"),
        "ssl.keystore.password": "storepass",
        "ssl.key.password": "keypass",
    }
    with pytest.raises(InvalidSetting) as refused:
        load_key_store(settings | changes)
    assert part in str(refused.value)
    assert "storepass" not in str(refused.value)


def test_a_damaged_java_key_store_is_refused(tmp_path: Path) -> None:
    whole = (STORES / "server.jks").read_bytes()
    for cut in (5, 30, 200, len(whole) - 25):
        file = tmp_path / "cut.jks"
        file.write_bytes(whole[:cut])
        with pytest.raises(InvalidSetting):
            load_key_store({"ssl.keystore.location": str(file)})


def test_no_file_stays_behind_and_no_handle_is_left_open(issued: Issued) -> None:
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": issued.key.decode(),
        "ssl.keystore.certificate.chain": issued.certificate.decode(),
    }
    server_context(settings, "none")
    before = sorted(os.listdir("/proc/self/fd"))
    server_context(settings, "none")
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_key_of_another_certificate_is_refused(authority: CertificateAuthority, issued: Issued) -> None:
    other = authority.issue("other")
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": other.key.decode(),
        "ssl.keystore.certificate.chain": issued.certificate.decode(),
    }
    with pytest.raises(InvalidSetting, match="key values mismatch"):
        server_context(settings, "none")


@pytest.mark.parametrize(
    ("settings", "versions"),
    [
        ({}, ("TLSv1_2", "TLSv1_3")),
        ({"ssl.enabled.protocols": "TLSv1.3"}, ("TLSv1_3", "TLSv1_3")),
        ({"ssl.enabled.protocols": "TLSv1.2"}, ("TLSv1_2", "TLSv1_2")),
        ({"ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}, ("TLSv1_2", "TLSv1_2")),
        (
            {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256"},
            ("TLSv1_3", "TLSv1_3"),
        ),
    ],
)
def test_protocols_follow_from_settings(settings: dict[str, str], versions: tuple[str, str]) -> None:
    context = client_context(settings)
    assert (context.minimum_version.name, context.maximum_version.name) == versions


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "ssl.enabled.protocols contains TLSv1.1"),
        ({"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}, "not all suites of TLS 1.3"),
        (
            {"ssl.cipher.suites": "TLS_NULL_WITH_NULL_NULL"},
            "TLS_NULL_WITH_NULL_NULL, which is not a known cipher suite",
        ),
        (
            {
                "ssl.enabled.protocols": "TLSv1.3",
                "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            },
            "no suite of the protocols",
        ),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "ssl.endpoint.identification.algorithm"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(settings: dict[str, str], part: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        client_context(settings)
    assert part in str(refused.value)


def test_suites_have_the_names_of_java() -> None:
    assert iana_name("ECDHE-RSA-AES128-GCM-SHA256") == "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    assert iana_name("AES256-SHA") == "TLS_RSA_WITH_AES_256_CBC_SHA"
    assert iana_name("TLS_AES_256_GCM_SHA384") == "TLS_AES_256_GCM_SHA384"


def test_suites_of_tls_1_2_are_those_that_are_named() -> None:
    context = client_context(
        {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_DHE_RSA_WITH_AES_256_GCM_SHA384"}
    )
    offered = {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"}
    assert offered == {"ECDHE-ECDSA-AES128-GCM-SHA256", "DHE-RSA-AES256-GCM-SHA384"}
