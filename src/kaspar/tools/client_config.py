"""The options that name a cluster and configure the connection to it. Importing this module loads no client."""

import argparse


def add_command_config(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--command-config",
        metavar="FILE",
        help="a properties file with settings of the client: request.timeout.ms, default.api.timeout.ms, client.id, "
        "security.protocol, sasl.* and ssl.*",
    )


def add_brokers_or_controllers(options: argparse.ArgumentParser) -> None:
    """For commands that can also connect to the controllers directly (KIP-919)."""
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to")
    options.add_argument(
        "--bootstrap-controller",
        metavar="HOST:PORT",
        help="controllers to connect to, instead of brokers; one of the two is REQUIRED",
    )


def add_client_properties(options: argparse.ArgumentParser, client: str) -> None:
    """For the console commands. `client` is producer or consumer, which is part of the names of the deprecated
    options.
    """
    options.add_argument("--command-property", action="append", metavar="KEY=VALUE", help=f"a property of the {client}")
    options.add_argument(
        "--command-config",
        metavar="FILE",
        help=f"a file with properties of the {client}, such as security.protocol, sasl.* and ssl.*; "
        "--command-property wins",
    )
    options.add_argument(
        f"--{client}-property", action="append", metavar="KEY=VALUE", help="deprecated: --command-property"
    )
    options.add_argument(
        f"--{client}.config", dest=f"{client}_config", metavar="FILE", help="deprecated: --command-config"
    )
