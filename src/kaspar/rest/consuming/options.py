"""The options of a consumer instance."""

from dataclasses import dataclass

from kaspar.rest.errors import INVALID_CONSUMER_CONFIG, INVALID_CONSUMER_CONSTRAINT, UNPROCESSABLE, RestError
from kaspar.rest.formats import EmbeddedFormat
from kaspar.rest.settings import FETCH_MIN_BYTES, RestSettings

_MAX_INT = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class InstanceOptions:
    format: EmbeddedFormat
    request_timeout_ms: int
    fetch_min_bytes: int
    """-1: a request for records waits for its whole timeout, unless the response is full."""
    properties: dict[str, str]
    """Properties of a Java consumer."""


def instance_options(
    settings: RestSettings,
    *,
    group: str,
    embedded: str | None = None,
    auto_offset_reset: str | None = None,
    auto_commit_enable: str | bool | None = None,
    fetch_min_bytes: int | None = None,
    request_timeout_ms: int | None = None,
) -> InstanceOptions:
    """Raises RestError."""
    properties = {"group.id": group}
    if auto_offset_reset is not None:
        properties["auto.offset.reset"] = auto_offset_reset
    if auto_commit_enable is not None:
        properties["enable.auto.commit"] = str(auto_commit_enable).lower()
    if fetch_min_bytes is not None and (problem := FETCH_MIN_BYTES.problem(fetch_min_bytes)) is not None:
        raise RestError(
            INVALID_CONSUMER_CONSTRAINT,
            f"Invalid value {fetch_min_bytes} for configuration fetch.min.bytes: {problem}",
        )
    if request_timeout_ms is not None and not 0 <= request_timeout_ms <= _MAX_INT:
        raise RestError(
            INVALID_CONSUMER_CONFIG,
            f"Invalid value {request_timeout_ms} for configuration consumer.request.timeout.ms: "
            "Value must be at least 0",
        )
    return InstanceOptions(
        _format(embedded),
        settings.consumer_request_timeout_ms if request_timeout_ms is None else request_timeout_ms,
        settings.fetch_min_bytes if fetch_min_bytes is None else fetch_min_bytes,
        properties,
    )


def _format(name: str | None) -> EmbeddedFormat:
    if name is None:
        return EmbeddedFormat.BINARY
    try:
        return EmbeddedFormat(name.lower())
    except ValueError:
        raise RestError(UNPROCESSABLE, "Invalid format type.") from None
