"""The settings of a program, under Kafka's names (StreamsConfig)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from kaspar.streams.errors import StreamsError
from kaspar.streams.serdes import serde_for
from kaspar.streams.topology.context import OnError, TaskSettings

_HANDLERS = {
    "fail": OnError.FAIL,
    "continue": OnError.CONTINUE,
    "LogAndFailExceptionHandler": OnError.FAIL,
    "LogAndContinueExceptionHandler": OnError.CONTINUE,
    "LogAndFailProcessingExceptionHandler": OnError.FAIL,
    "LogAndContinueProcessingExceptionHandler": OnError.CONTINUE,
    "DefaultProductionExceptionHandler": OnError.FAIL,
}


@dataclass(frozen=True, slots=True)
class StreamsConfig:
    application_id: str
    bootstrap_servers: str
    task_settings: TaskSettings

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Raises StreamsError with a sentence if a setting is missing or wrong."""
        for name in ("application.id", "bootstrap.servers"):
            if not given.get(name):
                raise StreamsError(f"The setting {name} is missing.")
        settings = TaskSettings(
            application_id=given["application.id"],
            default_key_serde=serde_for(given.get("default.key.serde", "text")),
            default_value_serde=serde_for(given.get("default.value.serde", "text")),
            on_deserialization_error=_handler(given, "deserialization.exception.handler"),
            on_processing_error=_handler(given, "processing.exception.handler"),
            on_production_error=_handler(given, "production.exception.handler"),
            dead_letter_topic=given.get("errors.dead.letter.queue.topic.name"),
            late_topic=given.get("kaspar.late.topic.name"),
        )
        return cls(settings.application_id, given["bootstrap.servers"], settings)


def _handler(given: Mapping[str, Any], name: str) -> OnError:
    text = str(given.get(name, "fail")).rpartition(".")[2]
    if text not in _HANDLERS:
        raise StreamsError(f"The setting {name} must be fail or continue, not {given[name]!r}.")
    return _HANDLERS[text]
