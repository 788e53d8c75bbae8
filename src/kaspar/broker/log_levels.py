"""The levels of the broker's own log, as the broker-logger resource of the config APIs: read, checked and changed.

Kafka's names are used on the wire: WARN and FATAL for Python's WARNING and CRITICAL. `root` is the broker's whole log.
The names of Kafka's loggers stand for the modules here that do the same work (broker/loggers.py). Levels belong to the
process and are lost when it ends.
"""

import logging
from collections.abc import Mapping

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.loggers import KAFKA_NAMES, ROOT_LOGGER, level_unless_set
from kaspar.config import AlterOperation
from kaspar.controller.events import ConfigChange, ConfigOperation

ROOT = "root"
_TRACE = 5
LEVELS = {
    "TRACE": _TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def levels() -> dict[str, str]:
    """The effective level of each logger, by name; for a name of Kafka's that stands for several, the lowest."""
    return {
        name: _level_name(min(logger.getEffectiveLevel() for logger in loggers))
        for name, loggers in sorted(_loggers().items())
    }


def check(broker_id: int, change: ConfigChange) -> None:
    """Check a change. Raises Refused with Kafka's message."""
    _check_name(broker_id, change.resource.name)
    names = [step.name for step in change.operations]
    if len(set(names)) < len(names):
        raise _invalid("Error due to duplicate config keys")
    if nulls := [
        step.name for step in change.operations if step.operation != AlterOperation.DELETE and step.value is None
    ]:
        raise _invalid(f"Null value not supported for : {', '.join(nulls)}")
    known = _loggers()
    for step in change.operations:
        _check_step(step, known)


def apply(change: ConfigChange) -> None:
    """Apply a change that was checked. Deleting a logger's level resets it to the level at the start."""
    known = _loggers()
    for step in change.operations:
        is_set = step.operation == AlterOperation.SET
        for logger in known[step.name]:
            logger.setLevel(LEVELS[step.value or ""] if is_set else level_unless_set(logger.name))


def _check_name(broker_id: int, name: str) -> None:
    try:
        node_id = int(name)
    except ValueError:
        raise _invalid(f"Node id must be an integer, but it is: {name}") from None
    if node_id != broker_id:
        raise _invalid(f"Unexpected node id. Expected {broker_id}, but received {name}")


def _check_step(step: ConfigOperation, known: Mapping[str, tuple[logging.Logger, ...]]) -> None:
    if step.operation not in list(AlterOperation):
        raise _invalid(f"Unknown operations type {step.operation}")
    operation = AlterOperation(step.operation)
    if operation in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
        raise _invalid(f"{operation.name} operation is not allowed for the BROKER_LOGGER resource")
    if operation is AlterOperation.DELETE and known.get(step.name) == known[ROOT]:
        raise _invalid("Removing the log level of the root logger is not allowed")
    if step.name not in known:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Logger {step.name} does not exist!")
    if operation is AlterOperation.SET and step.value not in LEVELS:
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {step.name} to {step.value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}",
        )


def _loggers() -> dict[str, tuple[logging.Logger, ...]]:
    """The broker's own loggers, without those of libraries, and those that Kafka's names stand for."""
    ours = {
        name: (logger,)
        for name, logger in logging.Logger.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and name.startswith(f"{ROOT_LOGGER}.")
    }
    kafkas = {name: tuple(map(logging.getLogger, loggers)) for name, loggers in KAFKA_NAMES.items()}
    return {ROOT: (logging.getLogger(ROOT_LOGGER),), **ours, **kafkas}


def _level_name(level: int) -> str:
    """The name of the lowest level that is logged. Python has numeric levels between the named ones."""
    return next((name for name, number in LEVELS.items() if number >= level), "FATAL")


def _invalid(problem: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, problem)
