"""TLS contexts from `ssl.*` settings, for both sides.

Private keys are passed to OpenSSL in an in-memory file that no other process can open, never in one on disk. Protocols
before TLS 1.2, compression and renegotiation are disabled.
"""

import os
import ssl
from collections.abc import Mapping
from typing import Any, Final

from kaspar.base.errors import InvalidSetting
from kaspar.security import cipher_suites
from kaspar.security.key_stores import KeyPair, load_key_store, load_trust_store

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
DEFAULT_PROTOCOLS: Final = "TLSv1.2,TLSv1.3"


class _Alerting(ssl.SSLObject):
    """Keeps the alert with which OpenSSL tells the peer why a handshake has failed. Event loops drop it, and the peer
    would only see a closed connection.
    """

    _outgoing: ssl.MemoryBIO

    @classmethod
    def _create(cls, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *more: Any, **options: Any) -> "_Alerting":
        created: _Alerting = super()._create(incoming, outgoing, *more, **options)  # type: ignore[misc]
        created._outgoing = outgoing
        return created

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as problem:
            problem.alert = self._outgoing.read()  # type: ignore[attr-defined]
            raise


def alert_of(problem: BaseException) -> bytes:
    """The alert to send to the peer of a failed handshake, before the connection is closed."""
    alert: bytes = getattr(problem, "alert", b"")
    return alert


def server_context(settings: Mapping[str, str], client_auth: str) -> ssl.SSLContext:
    """`client_auth` is one of none, requested and required. Raises InvalidSetting."""
    if client_auth not in _CLIENT_AUTH:
        raise InvalidSetting(f"Invalid value {client_auth} for configuration ssl.client.auth")
    pair = load_key_store(settings)
    if pair is None:
        raise InvalidSetting("a listener with TLS needs a key: set ssl.keystore.location or ssl.keystore.key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = _Alerting
    _apply_protocols(context, settings)
    _load_pair(context, pair)
    if client_auth != "none":
        _load_trusted(context, settings, ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = _CLIENT_AUTH[client_auth]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    return context


def client_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """The context of a client. Without a trust store the system's certificates are trusted. Raises InvalidSetting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _apply_protocols(context, settings)
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("", "https"):
        raise InvalidSetting(
            f"Invalid value {algorithm} for configuration ssl.endpoint.identification.algorithm: https, or nothing"
        )
    context.check_hostname = algorithm == "https"
    if (pair := load_key_store(settings)) is not None:
        _load_pair(context, pair)
    _load_trusted(context, settings, ssl.Purpose.SERVER_AUTH)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    return context


def failure_sentence(problem: BaseException) -> str:
    """Why a handshake failed, in a few words for users."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"the peer's certificate was rejected: {problem.verify_message}"
    if isinstance(problem, ssl.SSLError):
        reason = problem.reason or "unknown"
        return _REASONS.get(reason, reason.replace("_", " ").lower())
    if isinstance(problem, ConnectionResetError):
        return "the peer closed the connection"
    return str(problem) or type(problem).__name__


_REASONS: Final = {
    "HTTP_REQUEST": "the peer speaks HTTP, not TLS",
    "WRONG_VERSION_NUMBER": "the peer does not speak TLS",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the peer sent no certificate, which ssl.client.auth=required demands",
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not trust this certificate's issuer",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer rejected this certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer rejected this certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the peer reports that this certificate has expired",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the peer supports no enabled TLS version",
    "UNSUPPORTED_PROTOCOL": "the peer supports no enabled TLS version",
    "NO_SHARED_CIPHER": "the peer offers no enabled cipher suite",
}


def _apply_protocols(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    names = [name.strip() for name in settings.get("ssl.enabled.protocols", DEFAULT_PROTOCOLS).split(",")]
    unknown = [name for name in names if name not in _VERSIONS]
    if unknown or not names:
        raise InvalidSetting(f"ssl.enabled.protocols contains {', '.join(unknown)}: TLSv1.2 and TLSv1.3 are supported")
    suites = [name.strip() for name in settings.get("ssl.cipher.suites", "").split(",")]
    choice = cipher_suites.choose(suites)
    if choice is not None:
        usable = {"TLSv1.2": bool(choice.openssl), "TLSv1.3": choice.with_tls_1_3}
        names = [name for name in names if usable[name]]
        if not names:
            raise InvalidSetting("ssl.cipher.suites has no suite of the protocols in ssl.enabled.protocols")
        if choice.openssl:
            try:
                context.set_ciphers(choice.openssl)
            except ssl.SSLError:
                raise InvalidSetting("this OpenSSL has none of the suites of ssl.cipher.suites") from None
    versions = sorted(_VERSIONS[name] for name in names)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _load_trusted(context: ssl.SSLContext, settings: Mapping[str, str], purpose: ssl.Purpose) -> None:
    trusted = load_trust_store(settings)
    if trusted is None:
        context.load_default_certs(purpose)
        return
    if not trusted:
        raise InvalidSetting("the trust store has no certificate")
    try:
        context.load_verify_locations(cadata=b"".join(trusted))
    except ssl.SSLError:
        raise InvalidSetting("the certificates of the trust store cannot be read") from None
    # As in Java, everything in the trust store is trusted, including an intermediate or a peer's own certificate.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN


def _load_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    handle = os.memfd_create("key", os.MFD_CLOEXEC)
    try:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(pair.key + b"".join(pair.chain))
        context.load_cert_chain(f"/proc/self/fd/{handle}")
    except ssl.SSLError as problem:
        reason = (problem.reason or "unknown").replace("_", " ").lower()
        raise InvalidSetting(f"the private key and its certificate cannot be used: {reason}") from None
    finally:
        os.close(handle)
