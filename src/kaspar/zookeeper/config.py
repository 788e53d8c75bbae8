"""The configuration file of a ZooKeeper server (zoo.cfg): reads what we need to know of any file, and writes one.

A file that a user provides is passed to ZooKeeper unchanged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.config import load_settings

CLIENT_PORT: Final = 2181
LOOPBACK: Final = "127.0.0.1"
_EVERY_ADDRESS: Final = ("0.0.0.0", "::", "0:0:0:0:0:0:0:0")
_HEAD: Final = "# Written at every start. To change it, copy it and start ZooKeeper with the copy.\n"
_DEFAULTS: Final = {
    # Half of ZooKeeper's default, with the same limits in seconds: a session of 6 s then has six ticks, which brokers
    # need to know how long their session is certain to live.
    "tickTime": "1000",
    "initLimit": "20",
    "syncLimit": "10",
    "maxSessionTimeout": "40000",
    # Without these, snapshots and logs are kept forever.
    "autopurge.snapRetainCount": "3",
    "autopurge.purgeInterval": "1",
}


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """A server's file and what it says: the data directory, the client address and port (None if the file sets no
    port), and whether the server belongs to an ensemble."""

    file: Path
    data_dir: Path
    client_host: str
    client_port: int | None
    is_member: bool
    secure_client_port: int | None = None
    """The port for clients that use TLS."""
    stores: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The server's key and trust stores, as `ssl.*` settings."""

    @property
    def log_file(self) -> Path:
        return self.data_dir / "zookeeper.log"


@dataclass(frozen=True, slots=True)
class Member:
    """A server of an ensemble, as the other servers reach it."""

    id: int
    host: str = LOOPBACK
    peer_port: int = 2888
    election_port: int = 3888


def read_config(file: Path) -> ServerConfig:
    """Read a server's file. Raises KasparError."""
    values = load_settings(file)
    if not values.get("dataDir"):
        raise InvalidSetting(f"{file} does not set dataDir, the folder in which ZooKeeper keeps its data")
    port, secure_port = _port(file, values, "clientPort"), _port(file, values, "secureClientPort")
    address = "clientPortAddress" if port is not None else "secureClientPortAddress"
    host = values.get(address, LOOPBACK).strip()
    return ServerConfig(
        file.resolve(),
        Path(values["dataDir"]).resolve(),
        LOOPBACK if host in _EVERY_ADDRESS else host,
        port,
        any(name.startswith("server.") for name in values),
        secure_port,
        _stores(values),
    )


def _port(file: Path, values: Mapping[str, str], name: str) -> int | None:
    port = values.get(name)
    if port is None:
        return None
    if not port.strip().isdecimal():
        raise InvalidSetting(f"{name} in {file} is '{port}', which is not a port")
    return int(port)


def _stores(values: Mapping[str, str]) -> dict[str, str]:
    """The key and trust stores. One password is used for the key store and the key in it. A type that is not set is
    derived from the file name.
    """
    stores: dict[str, str] = {}
    for theirs, ours in (("ssl.keyStore.", "ssl.keystore."), ("ssl.trustStore.", "ssl.truststore.")):
        location, password = values.get(f"{theirs}location"), values.get(f"{theirs}password")
        if not location:
            continue
        by_name = "PEM" if location.lower().endswith(".pem") else "JKS"
        stores |= {f"{ours}location": location, f"{ours}type": values.get(f"{theirs}type") or by_name}
        if password:
            stores[f"{ours}password"] = password
    if "ssl.keystore.password" in stores:
        stores["ssl.key.password"] = stores["ssl.keystore.password"]
    return stores


def write_config(
    folder: Path,
    *,
    host: str = LOOPBACK,
    client_port: int = CLIENT_PORT,
    members: Sequence[Member] = (),
    more: Mapping[str, str] | None = None,
) -> ServerConfig:
    """Write the file of a server that keeps everything in `folder`: `zoo.cfg` and its data. `members` are all servers
    of its ensemble; `write_id` sets which of them it is.
    """
    data_dir = (folder / "data").resolve()
    values = {
        **_DEFAULTS,
        "dataDir": str(data_dir),
        "clientPort": str(client_port),
        "clientPortAddress": host,
        **{f"server.{each.id}": f"{each.host}:{each.peer_port}:{each.election_port}" for each in members},
        **(more or {}),
    }
    file = folder / "zoo.cfg"
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        file.write_text(_HEAD + "".join(f"{name}={value}\n" for name, value in values.items()))
    except OSError as problem:
        raise KasparError(f"{folder} cannot be used: {problem.strerror}") from None
    return read_config(file)


def write_id(config: ServerConfig, member_id: int) -> None:
    """Set for good which member of its ensemble a server is. Raises KasparError if its data is another member's."""
    file = config.data_dir / "myid"
    try:
        config.data_dir.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text(f"{member_id}\n")
        known = file.read_text().strip()
    except OSError as problem:
        raise KasparError(f"{file} cannot be used: {problem.strerror}") from None
    if known != str(member_id):
        raise KasparError(f"{config.data_dir} is the data of member {known}, not of member {member_id}")
