"""Spark's own Kafka connector as a peer: the jars that a session needs to know format("kafka").

It is the newest that Maven Central has, 4.2.0, and runs on Spark 4.3.
"""

from pathlib import Path

from tests.peers.kafka import jars_of

CONNECTOR_VERSION = "4.2.0"
POM = Path(__file__).with_name("spark-connector-pom.xml")


def connector_jars() -> list[Path]:
    """Fetched now if they are not in the cache."""
    return sorted(jars_of(f"spark-connector-{CONNECTOR_VERSION}", POM).glob("*.jar"))


def connector_settings() -> dict[str, str]:
    """What a session is started with, so that driver and executors have the connector."""
    class_path = ":".join(map(str, connector_jars()))
    return {"spark.driver.extraClassPath": class_path, "spark.executor.extraClassPath": class_path}
