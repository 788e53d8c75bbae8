"""`kaspar controller`: which broker controls a cluster, and moving that to another one."""

import time
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import ErrorCode, KasparError
from kaspar.cli.command import Command
from kaspar.cli.session import Session, cluster_options

if TYPE_CHECKING:
    from kaspar.client import Client

MOVED_WITHIN_S: Final = 30.0
REQUEST_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.02
_NO_CONTROLLER: Final = -1


@click.command(
    "controller",
    cls=Command,
    epilog="Example: kaspar controller --move --to 3 --bootstrap-server localhost:9092",
)
@cluster_options
@click.option("--move", is_flag=True, help="Have another broker control.")
@click.option("--to", type=int, metavar="ID", help="With --move: which one (default: any other).")
def command(session: Session, move: bool, to: int | None) -> None:
    """Show which broker is the controller of a cluster. With --move it resigns, and another broker takes its place,
    within a second: clients go on, and topics can be changed again from then on."""
    if to is not None and not move:
        raise KasparError("--to is for --move")
    try:
        with session.client(client_id="kaspar-controller", timeout_s=REQUEST_TIMEOUT_S) as client:
            print(_move(client, to) if move else f"Broker {_controller(client)} is the controller.")
    except OSError as problem:
        raise KasparError(f"no broker can be reached at {session.servers}: {problem}") from None


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
