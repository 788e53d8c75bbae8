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
"""Rotate by size alone: with a new file each day, lines would be deleted after ten days."""


def write_to(file: str) -> None:
    """Write the lines to this file, or to the service's log if it is empty, whatever its level. Raises KasparError."""
    logging.getLogger(LOGGER).setLevel(logging.INFO)
    if file:
        configure_apart([LOGGER], Path(file), rotation=_ROTATION)


class Outcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The change may have been made: there was no response, or the service was stopped before it."""


def record(scope: Scope, action: str, resource: str, outcome: Outcome, *, detail: str = "", reason: str = "") -> None:
    """Write one line. `reason` is the sentence that says why a change was refused, or why its outcome is not known."""
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
