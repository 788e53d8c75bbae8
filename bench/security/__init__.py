"""The cost of security: the same load against Kaspar and Apache Kafka, with TLS, authentication, ACLs and quotas.

`make bench-security` runs it.
"""
