"""`kaspar controller`: shows the controller of a cluster, or moves it to another broker."""

import time
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.cli.command import Command
from kaspar.cli.session import Session, cluster_options

if TYPE_CHECKING:
    from kaspar.client.admin.session import Admin

MOVED_WITHIN_S: Final = 30.0
_POLL_S: Final = 0.02
_NO_CONTROLLER: Final = -1


@click.command(
    "controller",
    cls=Command,
    epilog="Example: kaspar controller --move --to 3 --bootstrap-server localhost:9092",
)
@cluster_options
@click.option("--move", is_flag=True, help="Move the controller to another broker.")
@click.option("--to", type=int, metavar="ID", help="With --move: the new controller (default: any other broker).")
def command(session: Session, move: bool, to: int | None) -> None:
    """Show which broker is the controller of a cluster. With --move the controller resigns and another broker takes
    over within a second. Clients are not interrupted; topics cannot be changed in between."""
    if to is not None and not move:
        raise KasparError("--to requires --move")
    with session.admin() as admin:
        print(_move(admin, to) if move else f"Broker {_controller(admin)} is the controller.")


def _controller(admin: "Admin", *, until: float | None = None, other_than: int = _NO_CONTROLLER) -> int:
    """The controller, according to a broker's metadata. Waits while a controller is being elected."""
    until = time.monotonic() + MOVED_WITHIN_S if until is None else until
    while True:
        found = admin.client.refresh_metadata([]).controller_id
        if found not in (_NO_CONTROLLER, other_than):
            return found
        if time.monotonic() > until:
            raise KasparError(f"no broker became the controller within {MOVED_WITHIN_S:.0f} s")
        time.sleep(_POLL_S)


def _move(admin: "Admin", to: int | None) -> str:
    from kaspar.client.admin.controller import move_controller

    until = time.monotonic() + MOVED_WITHIN_S
    while True:
        before = _controller(admin, until=until)
        if before == to:
            return f"Broker {to} is already the controller."
        started = time.monotonic()
        try:
            move_controller(admin, before, to)
        except Refused as refused:
            if refused.code is ErrorCode.NOT_CONTROLLER and time.monotonic() <= until:
                continue
            raise KasparError(refused.message) from None
        now = _controller(admin, until=until, other_than=before)
        return f"Broker {now} became the controller after {time.monotonic() - started:.1f} s. It was broker {before}."
