"""Kafka clients for the callers of an HTTP service, each with the identity of its caller."""
