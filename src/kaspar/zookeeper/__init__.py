"""Running ZooKeeper: the server that comes with PySpark's jars, as one node or as a member of an ensemble.

- `config`: the file of a server, in ZooKeeper's own form (zoo.cfg): reading it, and writing one
- `claims`: what a server does not share with another: its data folder and its port
- `server`: the process: its command line, whether it serves, its end

Only commands and tests use this. Brokers are clients of an ensemble, whoever runs it (`kaspar.metadata.zookeeper`).
"""

from kaspar.zookeeper.config import Member, ServerConfig, read_config, write_config
from kaspar.zookeeper.server import State, ZooKeeperServer, state_of

__all__ = ["Member", "ServerConfig", "State", "ZooKeeperServer", "read_config", "state_of", "write_config"]
