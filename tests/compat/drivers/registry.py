"""Every client, by name, and which of them can do what."""

from collections.abc import Callable

from tests.compat.drivers.aio import AiokafkaDriver
from tests.compat.drivers.api import Ability, Driver
from tests.compat.drivers.confluent import ConfluentDriver
from tests.compat.drivers.foreign import FranzGoDriver, JavaDriver, KafkaJsDriver
from tests.compat.drivers.kafka_python import KafkaPythonDriver
from tests.compat.drivers.kcat import KcatDriver

_CLASSES = (
    ConfluentDriver,
    KafkaPythonDriver,
    AiokafkaDriver,
    KcatDriver,
    JavaDriver,
    FranzGoDriver,
    KafkaJsDriver,
)
DRIVERS: dict[str, Callable[[str], Driver]] = {each.name: each for each in _CLASSES}


def able(*abilities: Ability) -> list[str]:
    """The names of the clients that can do all of this."""
    return [each.name for each in _CLASSES if not any(ability in each.cannot for ability in abilities)]
