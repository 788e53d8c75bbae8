"""Replication between brokers: fetchers, in-sync replicas, throttles."""
