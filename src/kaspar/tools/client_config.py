"""The option --command-config, of every command that talks to a cluster. Importing this loads no client."""

import argparse


def add_command_config(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--command-config",
        metavar="FILE",
        help="a properties file with settings of the client: request.timeout.ms, default.api.timeout.ms, client.id, "
        "security.protocol, sasl.* and ssl.*",
    )
