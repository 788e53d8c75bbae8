"""The certificate that a listener shows, on a real socket."""

import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kaspar.monitor.doctor.observation import CertificateSeen
from kaspar.monitor.doctor.observing.certificates import look_at_certificates
from kaspar.monitor.doctor.observing.parts import Parts
from tests.peers.wire import free_port

NOT_AFTER = datetime.datetime(2020, 5, 1, tzinfo=datetime.UTC)


def pem(folder: Path) -> Path:
    """A key and its certificate, which expired long ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOT_AFTER - datetime.timedelta(days=9))
        .not_valid_after(NOT_AFTER)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "broker.pem"
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Of a listener that asks for a client's certificate, which the doctor has not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem(tmp_path))
    context.load_verify_locations(tmp_path / "broker.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        try:
            context.wrap_socket(connection, server_side=True).close()
        except OSError:
            connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    with listener:
        yield listener.getsockname()[1]
        thread.join(10)


def test_an_expired_certificate_that_nobody_trusts_is_seen(port: int) -> None:
    settings = {
        "listeners": "SSL://0.0.0.0:1,PLAINTEXT://0.0.0.0:2",
        "advertised.listeners": f"SSL://127.0.0.1:{port},PLAINTEXT://127.0.0.1:2",
    }
    parts = Parts()
    assert look_at_certificates({1: settings}, parts) == (
        CertificateSeen(1, f"SSL://127.0.0.1:{port}", int(NOT_AFTER.timestamp() * 1000)),
    )
    assert parts.missing == []


def test_a_listener_that_is_not_there_is_named() -> None:
    port = free_port()
    parts = Parts()
    assert look_at_certificates({1: {"listeners": f"SSL://127.0.0.1:{port}"}}, parts) == ()
    assert [each.what for each in parts.missing] == [f"certificate of SSL://127.0.0.1:{port}"]
