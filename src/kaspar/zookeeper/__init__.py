"""Runs ZooKeeper: the server that comes with PySpark's jars, standalone or as a member of an ensemble.

- `config`: reads and writes a server's configuration file, in ZooKeeper's own format (zoo.cfg)
- `claims`: what servers cannot share: the data directory and the port
- `server`: the process: its command line, its readiness, its exit

Only commands and tests use this package. Brokers are clients of an ensemble, whoever runs it
(`kaspar.metadata.zookeeper`).
"""

from kaspar.zookeeper.config import Member, ServerConfig, read_config, write_config
from kaspar.zookeeper.server import State, ZooKeeperServer, state_of

__all__ = ["Member", "ServerConfig", "State", "ZooKeeperServer", "read_config", "state_of", "write_config"]
