"""Stand in the place of the program's default serdes, which are known only when the program runs."""

from typing import Any

from kaspar.streams.serdes.serde import Serde


class _Unresolved:
    def serialize(self, topic: str, value: Any) -> bytes | None:
        raise AssertionError("with_defaults() comes first")

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        raise AssertionError("with_defaults() comes first")


class ProgramKeys(_Unresolved):
    """The serde of the setting default.key.serde."""

    def with_defaults(self, key_serde: Serde[Any], value_serde: Serde[Any]) -> Serde[Any]:
        return key_serde


class ProgramValues(_Unresolved):
    """The serde of the setting default.value.serde."""

    def with_defaults(self, key_serde: Serde[Any], value_serde: Serde[Any]) -> Serde[Any]:
        return value_serde
