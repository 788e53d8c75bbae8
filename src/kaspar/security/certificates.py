"""A certificate authority for tests and small clusters: its own certificate, and those of brokers and clients.

Keys are on the P-256 curve, whose handshakes cost a fraction of RSA's.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_DAYS: Final = 3650
DAYS: Final = 825
_CLOCKS_MAY_DIFFER: Final = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Issued:
    """A key and its certificate, whose issuer is `ca`, all in PEM."""

    name: str
    certificate: bytes
    key: bytes = field(repr=False)
    ca: bytes

    @property
    def key_and_chain(self) -> bytes:
        """The content of a file for `ssl.keystore.location` with ssl.keystore.type=PEM."""
        return self.key + self.certificate

    def pkcs12(self, password: str) -> bytes:
        """The key and the certificates as a PKCS #12 store."""
        own = x509.load_pem_x509_certificate(self.certificate)
        key = serialization.load_pem_private_key(self.key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        issuer = x509.load_pem_x509_certificate(self.ca)
        encryption = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(self.name.encode(), key, own, [issuer], encryption)


class CertificateAuthority:
    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def new(cls, name: str = "Kaspar CA") -> "CertificateAuthority":
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _common_name(name)
        builder = (
            _builder(subject, subject, key.public_key(), CA_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, certificate: bytes, key: bytes) -> "CertificateAuthority":
        """Load an authority from PEM. Raises ValueError."""
        private = serialization.load_pem_private_key(key, None)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise ValueError("the key of the authority is not on an elliptic curve")
        return cls(x509.load_pem_x509_certificate(certificate), private)

    @property
    def certificate(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key(self) -> bytes:
        return _key_text(self._key)

    def issue(
        self, name: str, *, hosts: Sequence[str] = (), days: float = DAYS, subject: x509.Name | None = None
    ) -> Issued:
        """Issue a certificate for a broker with these host names and addresses, or for a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH] + ([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])
        builder = (
            _builder(subject or _common_name(name), self._certificate.subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(map(_host, hosts)), critical=False)
        issued = builder.sign(self._key, hashes.SHA256())
        return Issued(name, issued.public_bytes(serialization.Encoding.PEM), _key_text(key), self.certificate)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: float
) -> x509.CertificateBuilder:
    """The common part of all certificates. With negative `days` the certificate has already expired."""
    now = datetime.datetime.now(datetime.UTC)
    ends = now + datetime.timedelta(days=days)
    begins = min(now, ends - _CLOCKS_MAY_DIFFER) - _CLOCKS_MAY_DIFFER
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
