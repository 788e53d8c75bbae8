"""Stores that a program declares for its processors (Kafka's Stores).

    builder.add_state_store(stores.key_value("last-seen", serdes.text(), serdes.long()))

A store without serdes has the program's defaults. Every store has a changelog topic, from which it is restored, unless
it is declared with `logged=False`: its contents are then lost if the machine is lost.
"""

from typing import Any

from kaspar.streams.errors import TopologyError
from kaspar.streams.serdes import Serde
from kaspar.streams.stores.kinds import KEY_VALUE, SESSION, TIMESTAMPED_KEY_VALUE, TIMESTAMPED_WINDOW, WINDOW
from kaspar.streams.stores.spec import StoreKind, StoreSpec
from kaspar.streams.windows import Duration, milliseconds


def key_value(
    name: str,
    key_serde: Serde[Any] | None = None,
    value_serde: Serde[Any] | None = None,
    *,
    timestamped: bool = False,
    logged: bool = True,
) -> StoreSpec:
    """A store with a value for each key; with `timestamped`, the values are ValueAndTimestamp."""
    kind = TIMESTAMPED_KEY_VALUE if timestamped else KEY_VALUE
    return StoreSpec(name, kind, key_serde, value_serde, is_logged=logged)


def window(
    name: str,
    retention: Duration,
    window_size: Duration,
    key_serde: Serde[Any] | None = None,
    value_serde: Serde[Any] | None = None,
    *,
    timestamped: bool = False,
    retain_duplicates: bool = False,
    logged: bool = True,
) -> StoreSpec:
    """A store of values by key and window start. Entries older than the retention, in stream time, are removed."""
    kind: StoreKind = TIMESTAMPED_WINDOW if timestamped else WINDOW
    retention_ms = milliseconds(retention, "The retention")
    window_size_ms = milliseconds(window_size, "The size of a window")
    if window_size_ms > retention_ms:
        raise TopologyError(
            f"The store {name} keeps windows of {window_size_ms} ms for {retention_ms} ms: the retention must not be "
            "smaller than a window."
        )
    return StoreSpec(
        name,
        kind,
        key_serde,
        value_serde,
        retention_ms=retention_ms,
        window_size_ms=window_size_ms,
        retain_duplicates=retain_duplicates,
        is_logged=logged,
    )


def session(
    name: str,
    retention: Duration,
    key_serde: Serde[Any] | None = None,
    value_serde: Serde[Any] | None = None,
    *,
    logged: bool = True,
) -> StoreSpec:
    """A store of values by key and session."""
    retention_ms = milliseconds(retention, "The retention")
    return StoreSpec(name, SESSION, key_serde, value_serde, retention_ms=retention_ms, is_logged=logged)
