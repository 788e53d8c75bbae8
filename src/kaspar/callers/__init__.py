"""Callers of HTTP services as Kafka clients: the identities that brokers see, and the clients and sessions of each."""
