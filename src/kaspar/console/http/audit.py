"""The audit log: a line for each change that a caller has made or tried to make."""

import logging
from enum import StrEnum
from pathlib import Path
from typing import Final

from kaspar.base.log import configure_apart, get_log
from kaspar.base.log_files import Rotation
from kaspar.web.asgi import Scope
from kaspar.web.identity import caller_of

LOGGER = "kaspar.console.audit"
log = get_log(LOGGER)

_ROTATION: Final = Rotation(period_s=0)
"""By size alone: with a new file each day, lines would be deleted after ten days."""


def write_to(file: str) -> None:
    """Send the lines to this file in place of the service's log. Its level does not leave them out. Raises
    KasparError."""
    logging.getLogger(LOGGER).setLevel(logging.INFO)
    if file:
        configure_apart([LOGGER], Path(file), rotation=_ROTATION)


class Outcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The change may have been made: no response came, or the service was stopped before."""


def record(scope: Scope, action: str, resource: str, outcome: Outcome, *, detail: str = "", reason: str = "") -> None:
    """`reason` is the sentence by which a change was refused, or that says why its outcome is not known."""
    client = scope.get("client")
    values = {
        "caller": caller_of(scope).name or "anonymous",
        "client": client[0] if client else "",
        "action": action,
        "resource": resource,
        "outcome": outcome.value,
    }
    if detail:
        values["detail"] = detail
    if reason:
        values["reason"] = reason
    log.info("change", **values)
