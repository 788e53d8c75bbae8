"""Changes of settings while the broker runs: the operations of IncrementalAlterConfigs, and what may change.

Works on texts, as settings are stored. Topic changes are checked by `validate_topic_overrides`.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import assert_never

from kaspar.base.errors import InvalidSetting
from kaspar.config.broker import BrokerConfig
from kaspar.config.declaration import Scope, Setting
from kaspar.config.describe import BrokerSettings
from kaspar.config.kinds import LIST, ConfigType


class AlterOperation(IntEnum):
    """The operation codes of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def apply_operation(
    declared: Mapping[str, Setting],
    values: Mapping[str, str],
    name: str,
    operation: AlterOperation,
    operand: str | None,
) -> dict[str, str]:
    """Return `values` with one change. Raises InvalidSetting for APPEND or SUBTRACT on a setting that is not a list."""
    changed = dict(values)
    match operation:
        case AlterOperation.SET:
            changed[name] = operand or ""
        case AlterOperation.DELETE:
            changed.pop(name, None)
        case AlterOperation.APPEND | AlterOperation.SUBTRACT:
            declaration = declared.get(name)
            if declaration is None or declaration.kind.code is not ConfigType.LIST:
                raise InvalidSetting(f"Can't {operation.name} to key {name} because its type is not LIST.")
            old = LIST.parse(changed[name]) if name in changed else declaration.default
            operands = LIST.parse(operand or "")
            if operation is AlterOperation.APPEND:
                new = old + tuple(part for part in dict.fromkeys(operands) if part not in old)
            else:
                new = tuple(part for part in old if part not in operands)
            changed[name] = LIST.format(new)
        case _:
            assert_never(operation)
    return changed


def validate_dynamic(settings: BrokerSettings, values: Mapping[str, str], *, per_broker: bool) -> None:
    """Validate dynamic broker values, given as the complete new set. Raises InvalidSetting."""
    declared = {name: BrokerConfig.declared[name] for name in values if name in BrokerConfig.declared}
    if fixed := [name for name, declaration in declared.items() if declaration.scope is Scope.READ_ONLY]:
        raise InvalidSetting(f"Cannot update these configs dynamically: {_listed(fixed)}")
    if bare := [name for name in declared if name in _ONLY_PER_LISTENER]:
        raise InvalidSetting(
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            + _listed(bare)
        )
    own = [name for name, declaration in declared.items() if declaration.scope is Scope.PER_BROKER]
    if own and not per_broker:
        raise InvalidSetting(
            f"Cannot update these configs at default cluster level, broker id must be specified: {_listed(own)}"
        )
    for name, declaration in declared.items():
        declaration.parse(values[name])
    default, broker = (settings.dynamic_default, values) if per_broker else (values, settings.dynamic_broker)
    changed = BrokerSettings(settings.static, default, broker)
    _check_cleaner_threads(settings.config.log_cleaner_threads, changed.config.log_cleaner_threads)


def _check_cleaner_threads(now: int, wanted: int) -> None:
    """Kafka's rule for resizing thread pools (KIP-226): a change at most doubles or halves them."""
    if wanted == now:
        return
    if wanted < 1:
        raise InvalidSetting("Log cleaner threads should be at least 1")
    if wanted < now // 2:
        raise InvalidSetting(f"Log cleaner threads cannot be reduced to less than half the current value {now}")
    if wanted > now * 2:
        raise InvalidSetting(f"Log cleaner threads cannot be increased to more than double the current value {now}")


_ONLY_PER_LISTENER = {
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
}
"""Keys and certificates belong to a listener and change only under its prefix; no other security setting needs one."""


def _listed(names: list[str]) -> str:
    return f"[{', '.join(sorted(names))}]"
