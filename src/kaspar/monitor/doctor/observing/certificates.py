"""The certificates that brokers present on their TLS listeners."""

import socket
import ssl
from collections.abc import Mapping
from functools import partial
from typing import Final

from kaspar.monitor.doctor.listeners import listeners_of
from kaspar.monitor.doctor.observation import CertificateSeen, Settings
from kaspar.monitor.doctor.observing.parts import Parts

_TIMEOUT_S: Final = 3.0


def look_at_certificates(broker_settings: Mapping[int, Settings], parts: Parts) -> tuple[CertificateSeen, ...]:
    """The certificates of all advertised TLS listeners. They are not verified, so expired ones are included."""
    found = []
    for broker_id, settings in broker_settings.items():
        name = "advertised.listeners" if settings.get("advertised.listeners") else "listeners"
        for listener in listeners_of(settings, name):
            if listener.has_tls:
                host = listener.host or "localhost"
                seen = parts.read(f"certificate of {listener}", partial(_not_after_ms, host, listener.port))
                if seen is not None:
                    found.append(CertificateSeen(broker_id, str(listener), seen))
    return tuple(found)


def _not_after_ms(host: str, port: int) -> int:
    """Raises OSError."""
    from cryptography.x509 import load_der_x509_certificate  # most clusters have no TLS

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((host, port), timeout=_TIMEOUT_S) as connection,
        context.wrap_socket(connection, server_hostname=host) as secured,
    ):
        octets = secured.getpeercert(binary_form=True)
    if octets is None:
        raise OSError("it presented no certificate")
    return int(load_der_x509_certificate(octets).not_valid_after_utc.timestamp() * 1000)
