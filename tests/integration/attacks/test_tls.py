"""TLS with wrong certificates, old versions and weak ciphers, in the wrong place, too much of it and too slowly."""

import contextlib
import datetime
import shutil
import socket
import ssl
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from kaspar.security.certificates import CertificateAuthority
from tests.integration.attacks.target import MAX_STRANGERS, Guest, Memory, Target, trusting
from tests.peers.downloads import ToolMissingError
from tests.peers.missing import unless_missing
from tests.peers.observed import MIB
from tests.peers.raw_client import request_frame

HELLO = request_frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
ALERT = 0x15


def gets_in(target: Target, context: ssl.SSLContext, listener: str = "MUTUAL") -> bool:
    """Whether a request gets a response: with TLS 1.3 a client learns only then what the broker says of it."""
    with target.guest(listener) as guest:
        try:
            guest.encrypt(context)
            guest.send(HELLO)
            return bool(guest.receive())
        except (ssl.SSLError, ConnectionError):
            return False


# -- certificates ------------------------------------------------------------------------------------------------------


def certificate(
    subject: str,
    signer: ec.EllipticCurvePrivateKey | None = None,
    issuer: str | None = None,
    *,
    days: tuple[int, int] = (-1, 10),
    purpose: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH,
) -> bytes:
    """The key and a certificate of it that `signer` signed: by itself, if it is None."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    issued = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer or subject))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .sign(signer or key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return pem + issued.public_bytes(serialization.Encoding.PEM)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def signed_by_a_client(authority: CertificateAuthority) -> bytes:
    """Alice's certificate is right, but she is no authority: what she signs is nothing."""
    alice = authority.issue("alice")
    return certificate("admin", _key(alice.key), "alice") + alice.certificate


CERTIFICATES: dict[str, Callable[[CertificateAuthority], bytes | None]] = {
    "none": lambda authority: None,
    "of another authority": lambda authority: CertificateAuthority.new().issue("alice").key_and_chain,
    "of another authority of the same name": lambda authority: (
        CertificateAuthority.new("Kaspar CA").issue("alice").key_and_chain
    ),
    "with another authority in its chain": lambda authority: (
        (other := CertificateAuthority.new()).issue("alice").key_and_chain + other.certificate + authority.certificate
    ),
    "signed by itself": lambda authority: certificate("alice"),
    "signed by a client": signed_by_a_client,
    "expired": lambda authority: authority.issue("alice", days=-1).key_and_chain,
    "not valid yet": lambda authority: certificate("alice", _key(authority.key), "Kaspar CA", days=(1, 10)),
    "for servers": lambda authority: certificate(
        "alice", _key(authority.key), "Kaspar CA", purpose=ExtendedKeyUsageOID.SERVER_AUTH
    ),
}


def with_certificate(target: Target, pem: bytes | None, folder: Path) -> ssl.SSLContext:
    context = trusting(target.authority)
    if pem is not None:
        (folder / "client.pem").write_bytes(pem)
        context.load_cert_chain(folder / "client.pem")
    return context


def test_a_right_certificate_gets_in(target: Target, tmp_path: Path) -> None:
    assert gets_in(target, with_certificate(target, target.authority.issue("alice").key_and_chain, tmp_path))
    forged = certificate("alice", _key(target.authority.key), "Kaspar CA")
    assert gets_in(target, with_certificate(target, forged, tmp_path)), "those below are wrong in one thing only"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("attack", CERTIFICATES)
def test_a_wrong_certificate(target: Target, attack: str, version: ssl.TLSVersion, tmp_path: Path) -> None:
    context = with_certificate(target, CERTIFICATES[attack](target.authority), tmp_path)
    context.minimum_version = context.maximum_version = version
    assert not gets_in(target, context)


# -- versions, ciphers and places --------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1], ids=["TLSv1", "TLSv1.1"])
def test_an_old_version(target: Target, version: ssl.TLSVersion) -> None:
    context = trusting(target.authority)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    assert not gets_in(target, context, "TLS")


@pytest.mark.parametrize("ciphers", ["aNULL", "eNULL", "3DES:RC4:SEED:IDEA:CAMELLIA", "kRSA", "PSK"])
def test_a_weak_cipher(target: Target, ciphers: str) -> None:
    context = trusting(target.authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    except ssl.SSLError:
        pytest.skip("this OpenSSL has none of them")
    assert not gets_in(target, context, "TLS")


def drained(guest: Guest) -> bytes:
    """What comes until the broker hangs up."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while chunk := guest.socket.recv(1 << 16):
            received += chunk
    return received


SSL_2_HELLO = bytes.fromhex("802e0100020015000000100100800200800600400400800700c0080080") + bytes(19)
SSL_3_HELLO = bytes.fromhex("16030000 2d 01000029 0300".replace(" ", "")) + bytes(32) + bytes.fromhex("000002000a0100")
PLAIN_TEXT = {
    "a request": HELLO,
    "HTTP": b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    "SSL 2": SSL_2_HELLO,
    "SSL 3": SSL_3_HELLO,
    "noise": bytes(range(256)) * 10,
}


@pytest.mark.parametrize("listener", ["TLS", "MUTUAL", "SASL_TLS"])
@pytest.mark.parametrize("attack", PLAIN_TEXT)
def test_what_is_no_tls_gets_an_alert_at_most(target: Target, listener: str, attack: str) -> None:
    with target.guest(listener) as guest:
        guest.send(PLAIN_TEXT[attack])
        received = drained(guest)
        assert not received or received[0] == ALERT


@pytest.mark.parametrize("listener", ["PLAINTEXT", "SASL", "STRICT"])
def test_tls_where_none_is_spoken_gets_nothing(target: Target, listener: str) -> None:
    with target.guest(listener) as guest, pytest.raises((ssl.SSLError, ConnectionError)):
        guest.encrypt(trusting(target.authority))


# -- too much, too slowly, again and again -----------------------------------------------------------------------------


def record(content: bytes, kind: int = 0x16) -> bytes:
    return struct.pack(">BHH", kind, 0x0301, len(content)) + content


ENDLESS = {
    "a hello of sixteen megabytes": record(b"\x01\xff\xff\xff" + bytes(16_000)) + record(bytes(16_000)) * 1000,
    "a record beyond the limit": struct.pack(">BHH", 0x16, 0x0301, 0xFFFF) + bytes(65_535),
    "empty records": record(b"") * 10_000,
    "warnings": record(b"\x01\x00", 0x15) * 10_000,
    "a hello in single bytes": b"".join(record(bytes([byte])) for byte in b"\x01\xff\xff\xff" + bytes(200_000)),
    "a certificate before the hello": record(b"\x0b\xff\xff\xff" + bytes(16_000)) * 100,
}


@pytest.mark.parametrize("attack", ENDLESS)
def test_a_handshake_that_does_not_end_is_cut_off(target: Target, attack: str) -> None:
    memory = Memory(target)
    guests = [target.guest("TLS") for _ in range(5)]
    for guest in guests:
        with contextlib.suppress(ConnectionError):
            guest.send(ENDLESS[attack])
        received = drained(guest)
        assert not received or received[0] == ALERT
        guest.close()
    memory.check(30 * MIB)


def test_thousands_of_half_open_handshakes_do_not_keep_others_out(target: Target) -> None:
    """Each sends a byte of its hello, and no more. Beyond the limit of strangers the oldest goes."""
    memory = Memory(target)
    hello = record(b"\x01\x00\x01\x00" + bytes(252))
    half_open: list[socket.socket] = []
    try:
        for number in range(4 * MAX_STRANGERS):
            half_open.append(socket.create_connection(("127.0.0.1", target.ports["TLS"]), timeout=30))
            half_open[-1].send(hello[: 1 + number % 100])
            if number % MAX_STRANGERS == 0:
                target.still_serves()
        target.still_serves()
        for sock in half_open[:MAX_STRANGERS]:
            with contextlib.suppress(ConnectionError):
                assert sock.recv(1) == b"", "the oldest are closed"
    finally:
        for sock in half_open:
            sock.close()
    memory.check(100 * MIB)


def test_a_hello_byte_by_byte_holds_up_nobody_and_is_served(target: Target) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(target.authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with target.guest("TLS") as slow:
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                for position, byte in enumerate(outgoing.read()):
                    slow.send(bytes([byte]))
                    if position % 200 == 0:
                        target.still_serves()
                incoming.write(slow.socket.recv(1 << 16))
        assert client.version() == "TLSv1.3"


@pytest.fixture(scope="module")
def openssl() -> str:
    def find() -> str:
        found = shutil.which("openssl")
        if found is None:
            raise ToolMissingError("openssl is not installed")
        return found

    return unless_missing(find)


@contextlib.contextmanager
def s_client(program: str, target: Target, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [program, "s_client", "-connect", f"127.0.0.1:{target.ports['TLS']}", *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[bytes], text: bytes) -> bytes:
    """What it has written up to this text, or all of it."""
    assert process.stdout is not None
    output = b""
    while text not in output and (chunk := process.stdout.read(4096)):
        output += chunk
    return output


def test_a_client_may_not_renegotiate(target: Target, openssl: str) -> None:
    """As often as it tries: the broker computes no second key exchange."""
    for _ in range(5):
        with s_client(openssl, target, "-tls1_2") as client:
            assert client.stdin is not None
            assert b"Extended master secret" in read_until(client, b"Extended master secret")
            client.stdin.write(b"R\n")
            output = read_until(client, b"no renegotiation")
            assert b"RENEGOTIATING" in output
            assert b"no renegotiation" in output


def test_a_storm_of_key_updates_holds_up_nobody(target: Target, openssl: str) -> None:
    with s_client(openssl, target, "-tls1_3") as client:
        assert client.stdin is not None
        read_until(client, b"Verify return code")
        for number in range(300):
            client.stdin.write(b"K\n")
            time.sleep(0.001)  # it takes one command of each read
            if number % 100 == 0:
                target.still_serves()


def test_a_fallback_to_an_older_version_is_noticed(target: Target, openssl: str) -> None:
    """TLS_FALLBACK_SCSV, RFC 7507: somebody in between has made the client believe that TLS 1.3 does not work."""
    with s_client(openssl, target, "-tls1_2", "-fallback_scsv") as client:
        assert b"inappropriate fallback" in read_until(client, b"inappropriate fallback")
