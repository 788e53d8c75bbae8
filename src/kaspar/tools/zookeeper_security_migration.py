"""zookeeper-security-migration: protects a cluster's nodes in ZooKeeper, or opens them. The options are those of Kafka
3.9.

It logs in like a broker: with the JAAS file in `KAFKA_OPTS`, or with the settings in `--zk-tls-config-file`, which may
be the properties file of a broker.
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError

if TYPE_CHECKING:
    from kaspar.config import BrokerConfig
    from kaspar.metadata.zookeeper.migration import Migrated

_PROGRAM: Final = "zookeeper-security-migration"
_PREFIXES: Final = ("zookeeper.", "kaspar.zookeeper.", "config.providers")


def command_options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Set the ACLs of all nodes of a cluster in ZooKeeper: 'secure' for brokers alone, which others may "
        "read unless they have secrets; 'unsecure' for everyone. Brokers may run. First give all of them a login or a "
        "certificate, then zookeeper.set.acl=true, then run this.",
        epilog=f"Example: {_PROGRAM} --zookeeper.acl secure --zookeeper.connect zk1:2182/kaspar "
        "--zk-tls-config-file server.properties",
    )
    parser.add_argument(
        "--zookeeper.acl",
        dest="acl",
        choices=("secure", "unsecure"),
        required=True,
        help="who may change the nodes: brokers only, or everyone",
    )
    parser.add_argument(
        "--zookeeper.connect",
        dest="connect",
        metavar="HOST:PORT[/CHROOT]",
        help="the ensemble (default: that of --zk-tls-config-file, or localhost:2181)",
    )
    for name in ("session", "connection"):
        parser.add_argument(
            f"--zookeeper.{name}.timeout",
            dest=f"{name}_timeout_ms",
            type=int,
            default=30_000,
            metavar="MS",
            help=f"as zookeeper.{name}.timeout.ms of a broker (default: %(default)s)",
        )
    parser.add_argument(
        "--enable.path.check",
        dest="path_check",
        action="store_true",
        help="accepted for compatibility: a path without a cluster is never changed",
    )
    parser.add_argument(
        "--zk-tls-config-file",
        type=Path,
        metavar="FILE",
        help="a properties file with zookeeper.ssl settings and kaspar.zookeeper.sasl.jaas.config, as brokers have it; "
        "other settings in it are ignored",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    arguments = command_options().parse_args(argv)
    # Imported here so that --help is fast.
    from kaspar.config import BrokerConfig, load_settings
    from kaspar.metadata.store import UnknownOutcome

    try:
        file = arguments.zk_tls_config_file
        config = BrokerConfig.of(_of_zookeeper(load_settings(file) if file is not None else {}, arguments))
        done = asyncio.run(_migrate(config, arguments))
    except UnknownOutcome as problem:
        print(f"{_PROGRAM}: {problem}: run the command again", file=sys.stderr)
        return 1
    except KasparError as problem:
        print(f"{_PROGRAM}: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    owners = " and ".join(done.owners)
    print(
        f"{done.nodes} nodes of {config.zookeeper_connect} can be changed by {owners} only."
        if arguments.acl == "secure"
        else f"{done.nodes} nodes of {config.zookeeper_connect} are open to everyone."
    )
    return 0


def _of_zookeeper(settings: Mapping[str, str], arguments: argparse.Namespace) -> dict[str, str]:
    known = {name: value for name, value in settings.items() if name.startswith(_PREFIXES)}
    return {
        **known,
        "zookeeper.connect": arguments.connect or known.get("zookeeper.connect") or "localhost:2181",
        "zookeeper.session.timeout.ms": str(arguments.session_timeout_ms),
        "zookeeper.connection.timeout.ms": str(arguments.connection_timeout_ms),
        "zookeeper.set.acl": "true",  # requires an identity, whether nodes are protected or opened
    }


async def _migrate(config: "BrokerConfig", arguments: argparse.Namespace) -> "Migrated":
    from kaspar.metadata.layout import store_paths
    from kaspar.metadata.zookeeper import ZooKeeperMetadata
    from kaspar.metadata.zookeeper.migration import set_all_acls

    metadata = await ZooKeeperMetadata.configured(config, create=False)
    try:
        store = metadata.connect()
        if await store.get(store_paths.CLUSTER_ID) is None:
            raise KasparError(f"there is no cluster at {metadata.address}: nothing was changed")
        return await set_all_acls(store, is_secure=arguments.acl == "secure")
    finally:
        await metadata.close()


if __name__ == "__main__":
    sys.exit(main())
