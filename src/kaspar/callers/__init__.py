"""Callers of HTTP services as Kafka clients: identities that are passed on to brokers, clients and sessions of each."""
