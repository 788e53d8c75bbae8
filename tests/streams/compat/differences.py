"""What is intended to differ from Kafka Streams, each with its reason. Everything else is compared record by record."""

from collections.abc import Mapping

LAST_VALUES_ONLY: Mapping[str, str] = {}
"""Topologies of which only the last value and timestamp of each key is compared, and why."""
