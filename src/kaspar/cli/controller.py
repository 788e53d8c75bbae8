"""`kaspar controller`: which broker controls a cluster, and moving that to another one."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, KasparError
from kaspar.tools.client_config import add_command_config

if TYPE_CHECKING:
    from kaspar.client import Client

MOVED_WITHIN_S: Final = 30.0
REQUEST_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.02
_NO_CONTROLLER: Final = -1


def add_controller(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    controller = commands.add_parser(
        "controller",
        help="show which broker controls a cluster, or move that to another one",
        description="Show which broker is the controller of a cluster. With --move it resigns, and another broker "
        "takes its place, within a second: clients go on, and topics can be changed again from then on.",
        epilog="Example: kaspar controller --move --to 3 --bootstrap-server localhost:9092",
    )
    controller.add_argument(
        "--bootstrap-server",
        default="localhost:9092",
        metavar="HOST:PORT",
        help="one or more brokers of the cluster, comma-separated (default: %(default)s)",
    )
    add_command_config(controller)
    controller.add_argument("--move", action="store_true", help="have another broker control")
    controller.add_argument("--to", type=int, metavar="ID", help="with --move: which one (default: any other)")


def run_controller(arguments: argparse.Namespace) -> int:
    from kaspar.tools.command_line import open_client

    servers = arguments.bootstrap_server
    try:
        if arguments.to is not None and not arguments.move:
            raise KasparError("--to is for --move")
        config = arguments.command_config
        with open_client(servers, config, client_id="kaspar-controller", timeout_s=REQUEST_TIMEOUT_S) as client:
            print(_move(client, arguments.to) if arguments.move else f"Broker {_controller(client)} is the controller.")
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    except OSError as problem:
        print(f"kaspar: no broker can be reached at {servers}: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _controller(client: "Client", *, until: float | None = None, other_than: int = _NO_CONTROLLER) -> int:
    """The controller, by the metadata of a broker. While one is being elected, this waits."""
    until = time.monotonic() + MOVED_WITHIN_S if until is None else until
    while True:
        found = client.refresh_metadata([]).controller_id
        if found not in (_NO_CONTROLLER, other_than):
            return found
        if time.monotonic() > until:
            raise KasparError(f"no broker has become the controller within {MOVED_WITHIN_S:.0f} s")
        time.sleep(_POLL_S)


def _move(client: "Client", to: int | None) -> str:
    from kaspar.protocol.messages.move_controller import MoveControllerRequest, MoveControllerResponse

    until = time.monotonic() + MOVED_WITHIN_S
    while True:
        before = _controller(client, until=until)
        if before == to:
            return f"Broker {to} is the controller already."
        request = MoveControllerRequest(to_broker_id=-1 if to is None else to)
        started = time.monotonic()
        try:
            response = client.request_broker(before, request, MoveControllerResponse, 0)
        except ConnectionResetError as problem:
            raise KasparError(
                f"broker {before} closed the connection: it is stopping, or it is not a Kaspar broker"
            ) from problem
        if response.error_code == ErrorCode.NONE:
            now = _controller(client, until=until, other_than=before)
            return (
                f"Broker {now} is the controller now, after {time.monotonic() - started:.1f} s. It was broker {before}."
            )
        if response.error_code != ErrorCode.NOT_CONTROLLER or time.monotonic() > until:
            raise KasparError(response.error_message or ErrorCode(response.error_code).name)
