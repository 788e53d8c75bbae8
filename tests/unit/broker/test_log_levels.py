"""Levels of the log, set by Kaspar's names and by Kafka's."""

import logging
from collections.abc import Iterator

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker import log_levels
from kaspar.broker.loggers import KAFKA_NAMES, SEPARATE_LOGS
from kaspar.config import AlterOperation
from kaspar.controller.events import ConfigChange, ConfigOperation, ConfigResource, ResourceType


@pytest.fixture(autouse=True)
def same_levels_afterwards() -> Iterator[None]:
    loggers = [logging.getLogger(name) for names in KAFKA_NAMES.values() for name in names]
    before = [(logger, logger.level) for logger in loggers]
    yield
    for logger, level in before:
        logger.setLevel(level)


def alter(name: str, value: str | None) -> None:
    operation = AlterOperation.DELETE if value is None else AlterOperation.SET
    resource = ConfigResource(ResourceType.BROKER_LOGGER, "1")
    change = ConfigChange(resource, (ConfigOperation(name, operation, value),))
    log_levels.check(1, change)
    log_levels.apply(change)


@pytest.mark.parametrize("name", sorted(KAFKA_NAMES))
def test_every_name_of_kafka_is_shown_set_and_deleted(name: str) -> None:
    before = log_levels.levels()[name]
    alter(name, "ERROR")
    assert log_levels.levels()[name] == "ERROR"
    for logger in KAFKA_NAMES[name]:
        assert logging.getLogger(logger).getEffectiveLevel() == logging.ERROR
    if KAFKA_NAMES[name] == ("kaspar",):
        with pytest.raises(Refused) as refused:
            alter(name, None)
        assert refused.value.code == ErrorCode.INVALID_REQUEST
    else:
        alter(name, None)
        assert log_levels.levels()[name] == before


def test_requests_and_state_changes_stay_off_in_a_log_at_debug() -> None:
    alter("root", "DEBUG")
    levels = log_levels.levels()
    assert levels["kafka.controller"] == "DEBUG"
    assert levels["kafka.request.logger"] == "WARN"
    assert levels["state.change.logger"] == "WARN"
    alter("kafka.request.logger", "TRACE")
    alter("kafka.request.logger", None)
    assert log_levels.levels()["kafka.request.logger"] == "WARN"


def test_every_file_of_its_own_belongs_to_a_name_of_kafka() -> None:
    named = {logger for loggers in KAFKA_NAMES.values() for logger in loggers}
    assert {logger for separate in SEPARATE_LOGS for logger in separate.loggers} <= named
