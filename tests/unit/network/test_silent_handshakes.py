"""Connections whose TLS handshake does not come count as those of strangers, and so do those that have no certificate
and send no request after it: at the limit the oldest one goes.
"""

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path

from kaspar.security.certificates import CertificateAuthority
from tests.unit.broker.running import run, running, until


async def is_closed(sock: socket.socket) -> bool:
    try:
        async with asyncio.timeout(0.2):
            return await asyncio.get_running_loop().sock_recv(sock, 1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def tls_settings(folder: Path, authority: CertificateAuthority) -> dict[str, str]:
    (folder / "broker.pem").write_bytes(authority.issue("broker", hosts=["localhost"]).key_and_chain)
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,TLS://127.0.0.1:0",
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,TLS:SSL",
        "inter_broker_listener_name": "PLAINTEXT",
        "listener_name_tls_ssl_keystore_type": "PEM",
        "listener_name_tls_ssl_keystore_location": str(folder / "broker.pem"),
        "kaspar_unauthenticated_max_connections": "2",
    }


def test_silent_connections_make_room_for_those_that_shake_hands(tmp_path: Path) -> None:
    authority = CertificateAuthority.new()
    settings = tls_settings(tmp_path, authority)

    async def scenario() -> None:
        async with running(tmp_path / "data", **settings) as broker:
            listener = broker.listeners[1]
            with contextlib.ExitStack() as stack:
                silent = []
                for number in range(4):
                    sock = stack.enter_context(socket.create_connection(("127.0.0.1", listener.port)))
                    sock.setblocking(False)
                    silent.append(sock)
                    await until(lambda wanted=number + 1: listener.accepted == wanted)  # type: ignore[misc]
                while not all([await is_closed(sock) for sock in silent[:2]]):
                    pass
                assert not any([await is_closed(sock) for sock in silent[2:]])
                assert listener.unidentified_closed == 2
                context = ssl.create_default_context(cadata=authority.certificate.decode())
                _, writer = await asyncio.open_connection(
                    "127.0.0.1", listener.port, ssl=context, server_hostname="localhost"
                )
                while not await is_closed(silent[2]):
                    pass
                assert not await is_closed(silent[3])
                await until(lambda: bool(listener.connections))
                writer.close()

    run(scenario())


def test_whoever_says_nothing_after_the_handshake_is_a_stranger_still(tmp_path: Path) -> None:
    authority = CertificateAuthority.new()
    settings = tls_settings(tmp_path, authority)
    context = ssl.create_default_context(cadata=authority.certificate.decode())

    async def scenario() -> None:
        async with running(tmp_path / "data", **settings) as broker:
            listener = broker.listeners[1]
            clients = []
            for number in range(4):
                clients.append(
                    await asyncio.open_connection("127.0.0.1", listener.port, ssl=context, server_hostname="localhost")
                )
                await until(lambda wanted=number + 1: listener.authentication.succeeded.total == wanted)  # type: ignore[misc]
            await until(lambda: listener.unidentified_closed == 2)
            for reader, _ in clients[:2]:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read(1) == b""
            assert len(listener.connections) == 2
            for _, writer in clients:
                writer.close()

    run(scenario())
