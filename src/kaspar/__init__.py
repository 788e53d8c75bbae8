"""Kaspar: a Kafka-compatible commit log and streaming platform."""

__version__ = "0.1.0"
