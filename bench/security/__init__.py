"""What security costs: the same load against Kaspar and Apache Kafka, over TLS, with log-ins, ACLs and quotas.

`make bench-security` runs it.
"""
