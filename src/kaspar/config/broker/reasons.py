"""Why settings that Kafka knows have no effect here, in sentences for the reference page."""

NO_SECURITY = "Only listeners that speak PLAINTEXT are served yet."
ONE_LOOP = "A broker is one process with one event loop; a machine uses its cores by running several."
NO_PURGE = "A finished request leaves the purgatory at once."
NO_PLUGINS = "Java classes cannot be loaded."
NO_QUORUM = "Metadata lives in the embedded store, not in a quorum of controllers."
NO_QUOTAS = "Quotas are not enforced yet."
NO_REPORTERS = "Metrics are read by Prometheus from `kaspar.metrics.listener`."
