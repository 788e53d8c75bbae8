"""Parses `zookeeper.connect` in Kafka's form: `host1:port1,host2:port2/chroot`."""

import re
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import InvalidSetting

DEFAULT_PORT: Final = 2181
MAX_CHROOT_BYTES: Final = 64
"""Every path that is sent begins with the chroot. With a longer chroot, a transaction of many small operations could
exceed what ZooKeeper accepts (`jute.maxbuffer`, 1 MiB), although the store allows it."""

_SERVER: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:\[\]/,@]+)(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class Address:
    """The servers of an ensemble as `host:port`, and the path below which all nodes are ("" is the root)."""

    servers: tuple[str, ...]
    chroot: str = ""

    @property
    def ensemble(self) -> str:
        return ",".join(self.servers)

    def __str__(self) -> str:
        return self.ensemble + self.chroot


def parse_address(text: str) -> Address:
    """Parse `zookeeper.connect`. Raises InvalidSetting with a message for users."""
    servers, slash, path = text.strip().partition("/")
    return Address(tuple(_server(part.strip(), text) for part in servers.split(",")), _chroot(slash + path, text))


def _server(part: str, text: str) -> str:
    found = _SERVER.fullmatch(part)
    port = int((found and found["port"]) or DEFAULT_PORT)
    if found is None or not 1 <= port <= 65_535:
        raise InvalidSetting(
            f"zookeeper.connect is '{text}', which is not of the form host1:port1,host2:port2/chroot: '{part}' is not "
            "a server"
        )
    return f"{found['host']}:{port}"


def _chroot(path: str, text: str) -> str:
    path = path.rstrip("/")
    names = path.split("/")[1:]
    if any(name in ("", ".", "..") or not name.isprintable() for name in names):
        raise InvalidSetting(f"zookeeper.connect is '{text}', and '{path}' is not a path of ZooKeeper")
    if len(path.encode()) > MAX_CHROOT_BYTES:
        raise InvalidSetting(f"the path in zookeeper.connect, '{path}', is longer than {MAX_CHROOT_BYTES} bytes")
    return path
