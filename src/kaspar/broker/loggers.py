"""The broker's loggers that have their own files, and Kafka's names for loggers.

With `kaspar.log.dir` a broker writes the same files as Kafka with its `log4j2.yaml`. Loggers with their own file do not
write to `server.log`. The controller and the cleaner also write to the terminal; requests, state changes and the
authorizer do not. Without `kaspar.log.dir`, state changes are only written if someone sets their level.

Levels can be set by the logger names of Kafka 3 and 4. A name that no logger here has stands for the modules that do
the same work.
"""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kaspar.base import log as structured_log
from kaspar.base.errors import KasparError
from kaspar.base.log_files import Rotation
from kaspar.config import BrokerConfig
from kaspar.controller.state_changes import STATE_CHANGE_LOGGER
from kaspar.network.request_log import REQUEST_LOGGER

ROOT_LOGGER: Final = "kaspar"
AUDIT_LOGGER: Final = "kaspar.authorizer.logger"
"""The authorizer's logger: denied operations at INFO, allowed ones at DEBUG."""
SERVER_LOG: Final = "server.log"


@dataclass(frozen=True, slots=True)
class SeparateLog:
    file: str
    loggers: tuple[str, ...]
    level: int | None = None
    """The level in its own file unless another is set; None: the level of the whole log."""
    on_terminal: bool = False


_CONTROLLER: Final = ("kaspar.controller", "kaspar.broker.cluster")
_CLEANER: Final = ("kaspar.broker.cleaning", "kaspar.storage.cleaning")

SEPARATE_LOGS: Final = (
    SeparateLog("controller.log", _CONTROLLER, on_terminal=True),
    SeparateLog("kafka-request.log", (REQUEST_LOGGER,), logging.WARNING),
    SeparateLog("log-cleaner.log", _CLEANER, on_terminal=True),
    SeparateLog("state-change.log", (STATE_CHANGE_LOGGER,), logging.INFO),
    SeparateLog("kafka-authorizer.log", (AUDIT_LOGGER,)),
)

KAFKA_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "kafka": (ROOT_LOGGER,),
    "org.apache.kafka": (ROOT_LOGGER,),
    "kafka.authorizer.logger": (AUDIT_LOGGER,),
    "kafka.controller": _CONTROLLER,
    "org.apache.kafka.controller": _CONTROLLER,
    "kafka.coordinator.group": ("kaspar.groups", "kaspar.broker.coordination"),
    "org.apache.kafka.coordinator.group": ("kaspar.groups", "kaspar.broker.coordination"),
    "kafka.coordinator.transaction": ("kaspar.transactions", "kaspar.broker.coordination"),
    "kafka.log": ("kaspar.storage",),
    "org.apache.kafka.storage.internals.log": ("kaspar.storage",),
    "kafka.log.LogCleaner": _CLEANER,
    "org.apache.kafka.storage.internals.log.LogCleaner": _CLEANER,
    "org.apache.kafka.storage.internals.log.Cleaner": _CLEANER,
    "kafka.network": ("kaspar.network",),
    "kafka.request.logger": (REQUEST_LOGGER,),
    "kafka.server": ("kaspar.broker",),
    "kafka.zookeeper": ("kaspar.metadata.zookeeper",),
    "state.change.logger": (STATE_CHANGE_LOGGER,),
}
"""The loggers here that each of Kafka's names stands for."""

_INHERITED: Final = logging.NOTSET
_own_levels: dict[str, int] = {REQUEST_LOGGER: logging.WARNING, STATE_CHANGE_LOGGER: logging.WARNING}


def level_unless_set(logger: str) -> int:
    """The level of a logger that nobody has set: its own default, or NOTSET for the level of the whole log."""
    return _own_levels.get(logger, _INHERITED)


def configure(config: BrokerConfig) -> None:
    """Set up the logging of a broker process by its settings. Raises KasparError if a file cannot be written."""
    rotation = Rotation(
        config.kaspar_log_max_file_bytes, config.kaspar_log_roll_ms // 1000, config.kaspar_log_max_backups
    )
    folder = _folder(config)
    structured_log.configure(
        level=config.kaspar_log_level.upper(),
        file=Path(config.kaspar_log_file) if config.kaspar_log_file else None,
        text_file=None if folder is None else folder / SERVER_LOG,
        elsewhere=[name for separate in SEPARATE_LOGS for name in separate.loggers],
        rotation=rotation,
    )
    if folder is not None:
        for separate in SEPARATE_LOGS:
            _configure_separate(separate, folder, rotation)
    if config.kaspar_authorizer_log_file:
        structured_log.configure_apart([AUDIT_LOGGER], Path(config.kaspar_authorizer_log_file), rotation=rotation)


def _configure_separate(separate: SeparateLog, folder: Path, rotation: Rotation) -> None:
    formatter = structured_log.TextFormatter()
    structured_log.configure_apart(
        separate.loggers, folder / separate.file, formatter, rotation, also_in_the_log=separate.on_terminal
    )
    if separate.level is not None:
        for name in separate.loggers:
            _own_levels[name] = separate.level
            logging.getLogger(name).setLevel(separate.level)


def _folder(config: BrokerConfig) -> Path | None:
    if not config.kaspar_log_dir:
        return None
    folder = Path(config.kaspar_log_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise KasparError(f"the folder of kaspar.log.dir, {folder}, cannot be created: {problem.strerror}") from problem
    return folder
