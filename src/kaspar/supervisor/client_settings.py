"""Ready-made settings for clients of a secured cluster: for Java, librdkafka and the Spark data source. They contain
passwords.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

_LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True)
class Access:
    """What one user needs to connect to a cluster."""

    bootstrap_servers: str
    trusted: Path
    """The CA certificate, in PEM."""
    mechanism: str
    user: str
    password: str

    @property
    def java(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": f'{_LOGIN_MODULE} required username="{self.user}" password="{self.password}";',
        }

    @property
    def librdkafka(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.trusted),
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.user,
            "sasl.password": self.password,
        }

    @property
    def spark(self) -> dict[str, str]:
        """Contains the certificate itself, so that executors need no file."""
        options = {f"kafka.{name}": value for name, value in self.java.items()}
        del options["kafka.ssl.truststore.location"]
        return {**options, "kafka.ssl.truststore.certificates": self.trusted.read_text(encoding="ascii")}

    def files(self) -> dict[str, str]:
        """The text of each file, by name. `USER.properties` is for Java."""
        spark = msgspec.json.format(msgspec.json.encode(self.spark), indent=1).decode()
        return {
            f"{self.user}.properties": _properties(self.java).replace("\\", "\\\\"),
            f"{self.user}.librdkafka.properties": _properties(self.librdkafka),
            f"{self.user}.spark.json": f"{spark}\n",
        }


def _properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())
