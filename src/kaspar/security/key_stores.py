"""Private keys, certificate chains and trusted certificates from `ssl.*` settings: PEM as text or in files, PKCS #12
files, and Java key stores.

As in Java, a store of type JKS may be a PKCS #12 file and vice versa: the first bytes decide. What is read stays in
memory. Errors contain the setting or the file, never its content.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from kaspar.base.errors import InvalidSetting
from kaspar.security import jks

STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An unencrypted private key and its certificates, the key's own first, all as PEM."""

    key: bytes = field(repr=False)
    chain: tuple[bytes, ...]

    @property
    def certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.chain[0])


def load_key_store(settings: Mapping[str, str]) -> KeyPair | None:
    """The key and certificates of `ssl.keystore.*`; None if there is no such setting. Raises InvalidSetting."""
    kind = _kind(settings, "ssl.keystore.type")
    password, key_password = settings.get("ssl.keystore.password"), settings.get("ssl.key.password")
    key, chain = settings.get("ssl.keystore.key"), settings.get("ssl.keystore.certificate.chain")
    location = settings.get("ssl.keystore.location")
    if key or chain:
        if kind != "PEM" or location:
            raise InvalidSetting("ssl.keystore.key and .certificate.chain need ssl.keystore.type=PEM and no location")
        if not key or not chain:
            raise InvalidSetting("ssl.keystore.key and ssl.keystore.certificate.chain must be given together")
        return _pem_pair("ssl.keystore.key", key.encode(), chain.encode(), key_password)
    if not location:
        return None
    data = _content("ssl.keystore.location", location)
    if kind == "PEM":
        return _pem_pair(location, data, data, key_password)
    try:
        if data.startswith(jks.MAGIC):
            return _from_jks(data, password, key_password)
        return _from_pkcs12(data, password)
    except InvalidSetting as problem:
        raise InvalidSetting(f"ssl.keystore.location {location} cannot be used: {problem}") from None


def load_trust_store(settings: Mapping[str, str]) -> tuple[bytes, ...] | None:
    """The certificates of `ssl.truststore.*` in DER; None if there is no such setting."""
    kind = _kind(settings, "ssl.truststore.type")
    password, location = settings.get("ssl.truststore.password"), settings.get("ssl.truststore.location")
    certificates = settings.get("ssl.truststore.certificates")
    if certificates:
        if kind != "PEM" or location:
            raise InvalidSetting("ssl.truststore.certificates needs ssl.truststore.type=PEM and no location")
        return _der(_pem_certificates("ssl.truststore.certificates", certificates.encode()))
    if not location:
        return None
    data = _content("ssl.truststore.location", location)
    if kind == "PEM":
        return _der(_pem_certificates(location, data))
    try:
        if data.startswith(jks.MAGIC):
            return jks.read_jks(data, password).trusted
        return _trusted_of_pkcs12(data, password)
    except InvalidSetting as problem:
        raise InvalidSetting(f"ssl.truststore.location {location} cannot be used: {problem}") from None


def store_files(settings: Mapping[str, str]) -> list[Path]:
    """The files to watch, because their content determines what is loaded."""
    names = ("ssl.keystore.location", "ssl.truststore.location")
    return [Path(settings[name]) for name in names if settings.get(name)]


def _kind(settings: Mapping[str, str], name: str) -> str:
    kind = settings.get(name, "JKS").strip().upper()
    if kind not in STORE_TYPES:
        raise InvalidSetting(f"Invalid value {kind} for configuration {name}: one of {', '.join(STORE_TYPES)} is known")
    return kind


def _content(name: str, location: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as problem:
        raise InvalidSetting(f"{name} {location} cannot be read: {problem.strerror}") from None


def _pem_pair(where: str, key: bytes, chain: bytes, password: str | None) -> KeyPair:
    certificates = _pem_certificates(where, chain)
    start = key.find(b"-----BEGIN ", _first_key(key))
    if start < 0:
        raise InvalidSetting(f"{where} has no private key in PEM")
    try:
        private = serialization.load_pem_private_key(key[start:], password.encode() if password else None)
    except TypeError:
        raise InvalidSetting(
            f"the private key of {where} is encrypted: ssl.key.password is required"
            if not password
            else f"the private key of {where} is not encrypted, and ssl.key.password is given"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidSetting(f"the private key of {where} cannot be read, or ssl.key.password is incorrect") from None
    return _pair(private, certificates)


def _first_key(text: bytes) -> int:
    """The position of the first private key in a PEM text, or the length of the text."""
    position = 0
    while (start := text.find(b"-----BEGIN ", position)) >= 0:
        line_end = text.find(b"-----", start + len(b"-----BEGIN "))
        if b"PRIVATE KEY" in text[start:line_end]:
            return start
        position = start + 1
    return len(text)


def _pem_certificates(where: str, text: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text)
    except ValueError:
        raise InvalidSetting(f"{where} has no readable PEM certificate") from None


def _der(certificates: list[x509.Certificate]) -> tuple[bytes, ...]:
    return tuple(each.public_bytes(serialization.Encoding.DER) for each in certificates)


def _pair(private: object, chain: list[x509.Certificate]) -> KeyPair:
    text: bytes = private.private_bytes(  # type: ignore[attr-defined]  # one of many classes of keys
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(text, tuple(each.public_bytes(serialization.Encoding.PEM) for each in chain))


def _from_jks(data: bytes, password: str | None, key_password: str | None) -> KeyPair:
    store = jks.read_jks(data, password)
    if not store.keys:
        raise InvalidSetting("it has no private key")
    entry = store.keys[0]
    secret = key_password or password
    if secret is None:
        raise InvalidSetting("ssl.keystore.password is required")
    try:
        private = serialization.load_der_private_key(jks.unmask(entry.masked_key, secret), None)
        return _pair(private, [x509.load_der_x509_certificate(each) for each in entry.chain])
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidSetting("its private key or certificates cannot be read") from None


def _from_pkcs12(data: bytes, password: str | None) -> KeyPair:
    store = _pkcs12(data, password)
    if store.key is None or store.cert is None:
        raise InvalidSetting("it has no private key with a certificate")
    others = [each.certificate for each in store.additional_certs]
    return _pair(store.key, _chain(store.cert.certificate, others))


def _trusted_of_pkcs12(data: bytes, password: str | None) -> tuple[bytes, ...]:
    store = _pkcs12(data, password)
    own = [store.cert.certificate] if store.cert is not None and store.key is None else []
    return _der(own + [each.certificate for each in store.additional_certs])


def _pkcs12(data: bytes, password: str | None) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(data, password.encode() if password else None)
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidSetting("it is not a key store, or its password is incorrect") from None


def _chain(own: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """The chain from the key's own certificate to the last issuer in the file, which may have any order."""
    chain = [own]
    while True:
        last = chain[-1]
        issuer = next((each for each in others if each.subject == last.issuer and each not in chain), None)
        if issuer is None or last.issuer == last.subject:
            return chain
        chain.append(issuer)
