"""Why settings that Kafka knows have no effect here, in sentences for the reference page."""

KERBEROS_RENEWS = (
    "The Kerberos library fetches a ticket with the key when a connection needs one, and the next in the middle of its "
    "life; a ticket cache is renewed by the program that filled it."
)
ONE_LOOP = "A broker is one process with one event loop; a machine uses its cores by running several."
NO_PURGE = "A finished request leaves the purgatory at once."
OPENSSL_DECIDES = "TLS is OpenSSL's, which has its own."
NO_TOKEN_REQUESTS = "A broker asks no server for tokens; between brokers, `sasl.jaas.config` has them."
NO_PLUGINS = "Java classes cannot be loaded."
NO_QUORUM = "Metadata lives in the embedded store or in ZooKeeper, not in a quorum of controllers."
NO_REPORTERS = "Metrics are read by Prometheus from `kaspar.metrics.listener`."
NO_SHARE_GROUPS = "Share groups are not served yet."
NO_STREAMS_GROUPS = "Streams groups are not served yet; Kafka Streams uses classic ones."
NO_TIERS = "Tiered storage is not supported yet."
NO_HEARTBEATS = "Brokers register in ZooKeeper, and `zookeeper.session.timeout.ms` decides when one is dead."
NO_FAILURE_TIMEOUT = "A broker continues with its other log directories."
FIXED_TIMEOUTS = "This timeout between brokers is fixed."
