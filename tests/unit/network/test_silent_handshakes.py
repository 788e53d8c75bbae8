"""Connections whose TLS handshake does not come count as those of strangers: at the limit the oldest one goes."""

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


def test_silent_connections_make_room_for_those_that_shake_hands(tmp_path: Path) -> None:
    authority = CertificateAuthority.new()
    (tmp_path / "broker.pem").write_bytes(authority.issue("broker", hosts=["localhost"]).key_and_chain)
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,TLS://127.0.0.1:0",
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,TLS:SSL",
        "inter_broker_listener_name": "PLAINTEXT",
        "listener_name_tls_ssl_keystore_type": "PEM",
        "listener_name_tls_ssl_keystore_location": str(tmp_path / "broker.pem"),
        "kaspar_unauthenticated_max_connections": "2",
    }

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
                assert listener.strangers_closed == 2
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
