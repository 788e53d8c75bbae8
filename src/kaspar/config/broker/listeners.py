"""Listeners, sockets, and limits on connections and requests."""

from kaspar.config.checks import at_least, one_of
from kaspar.config.declaration import Importance, Scope, Settings, setting
from kaspar.config.kinds import INT, LIST, LONG, MAX_INT, STRING
from kaspar.config.reasons import FIXED_TIMEOUTS, NO_PURGE, ONE_LOOP
from kaspar.config.units import MIB, MINUTE_MS


class ListenerSettings(Settings):
    listeners: tuple[str, ...] = setting(
        LIST,
        ("PLAINTEXT://:9092",),
        importance=Importance.HIGH,
        scope=Scope.PER_BROKER,
        doc="The addresses the broker listens on: comma-separated `NAME://host:port`. An empty host listens on "
        "every address; port 0 chooses a free one. A dynamic change takes effect at the next start.",
    )
    advertised_listeners: tuple[str, ...] | None = setting(
        LIST,
        None,
        importance=Importance.HIGH,
        doc="The addresses that clients connect to, where they differ from `listeners`.",
    )
    listener_security_protocol_map: str = setting(
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        importance=Importance.LOW,
        scope=Scope.PER_BROKER,
        doc="Which security protocol each listener name speaks. A listener name that is itself a protocol needs "
        "no entry.",
    )
    inter_broker_listener_name: str | None = setting(STRING, None, doc="The listener that other brokers use.")
    security_inter_broker_protocol: str = setting(
        STRING,
        "PLAINTEXT",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        doc="The security protocol between brokers, where `inter.broker.listener.name` is not given.",
    )
    controller_listener_names: tuple[str, ...] = setting(
        LIST,
        (),
        importance=Importance.HIGH,
        shows_no_default=True,
        doc="Listeners meant for controllers. The broker does not open them: its controller lives in the same process.",
    )
    early_start_listeners: tuple[str, ...] | None = setting(
        LIST,
        None,
        importance=Importance.HIGH,
        not_honoured="One process opens all its listeners at once, when it is ready.",
        doc="Listeners that open before the broker is ready.",
    )
    socket_send_buffer_bytes: int = setting(
        INT,
        -1,
        importance=Importance.HIGH,
        doc="The send buffer (SO_SNDBUF) of client sockets. -1 leaves it to the system, which makes it as large "
        "as a connection can use.",
    )
    socket_receive_buffer_bytes: int = setting(
        INT,
        -1,
        importance=Importance.HIGH,
        doc="The receive buffer (SO_RCVBUF) of client sockets. -1 leaves it to the system, which makes it as large "
        "as a connection can use.",
    )
    socket_request_max_bytes: int = setting(
        INT,
        100 * MIB,
        at_least(1),
        importance=Importance.HIGH,
        doc="The largest request that is accepted; a larger length prefix closes the connection.",
    )
    socket_listen_backlog_size: int = setting(
        INT, 50, at_least(1), doc="How many connections the system may queue before the broker accepts them."
    )
    socket_connection_setup_timeout_ms: int = setting(
        LONG,
        10_000,
        not_honoured=FIXED_TIMEOUTS,
        doc="How long the broker waits for a connection it opens to another broker.",
    )
    socket_connection_setup_timeout_max_ms: int = setting(
        LONG,
        30_000,
        not_honoured=FIXED_TIMEOUTS,
        doc="The longest the broker waits for such a connection after repeated failures.",
    )
    max_connections: int = setting(
        INT,
        MAX_INT,
        at_least(0),
        scope=Scope.CLUSTER_WIDE,
        doc="How many connections the broker holds at once; further ones wait in the backlog or are closed.",
    )
    max_connections_per_ip: int = setting(
        INT,
        MAX_INT,
        at_least(0),
        scope=Scope.CLUSTER_WIDE,
        doc="How many connections one address may hold; further ones are closed.",
    )
    max_connections_per_ip_overrides: str = setting(
        STRING, "", scope=Scope.CLUSTER_WIDE, doc="Other limits for some addresses: `host:number`, comma-separated."
    )
    max_connection_creation_rate: int = setting(
        INT,
        MAX_INT,
        at_least(0),
        scope=Scope.CLUSTER_WIDE,
        doc="How many new connections a second are accepted (KIP-612); further ones wait in the backlog. A listener "
        "may have its own limit: `listener.name.NAME.max.connection.creation.rate`.",
    )
    connections_max_idle_ms: int = setting(
        LONG,
        10 * MINUTE_MS,
        doc="A connection on which nothing happens for this long is closed. A negative value never closes one.",
    )
    connection_failed_authentication_delay_ms: int = setting(
        INT,
        100,
        at_least(0),
        importance=Importance.LOW,
        doc="How long the broker waits before it responds to a failed authentication and closes the connection.",
    )
    queued_max_requests: int = setting(
        INT,
        500,
        at_least(1),
        importance=Importance.HIGH,
        doc="How many batches may wait for a check in a thread before the broker stops reading from its connections. "
        "Everything else is handled as it arrives, without a queue.",
    )
    queued_max_request_bytes: int = setting(
        LONG,
        -1,
        doc="How many bytes of requests may be in memory at once before the broker stops reading. -1 sets no limit.",
    )
    request_timeout_ms: int = setting(
        INT,
        30_000,
        importance=Importance.HIGH,
        doc="How long the broker waits for the response to a request it sends.",
    )
    num_network_threads: int = setting(
        INT,
        3,
        at_least(1),
        importance=Importance.HIGH,
        scope=Scope.CLUSTER_WIDE,
        not_honoured=ONE_LOOP,
        doc="How many threads read and write sockets.",
    )
    num_io_threads: int = setting(
        INT,
        8,
        at_least(1),
        importance=Importance.HIGH,
        scope=Scope.CLUSTER_WIDE,
        not_honoured=ONE_LOOP,
        doc="How many threads handle requests.",
    )
    background_threads: int = setting(
        INT,
        10,
        at_least(1),
        importance=Importance.HIGH,
        scope=Scope.CLUSTER_WIDE,
        not_honoured=ONE_LOOP,
        doc="How many threads do background work.",
    )
    fetch_max_bytes: int = setting(
        INT,
        55 * MIB,
        at_least(1024),
        doc="The largest fetch response, whatever the client asks for. The first batch is always complete.",
    )
    fetch_purgatory_purge_interval_requests: int = setting(
        INT, 1000, not_honoured=NO_PURGE, doc="After how many requests finished fetches are removed from the purgatory."
    )
    producer_purgatory_purge_interval_requests: int = setting(
        INT,
        1000,
        not_honoured=NO_PURGE,
        doc="After how many requests finished produce requests are removed from the purgatory.",
    )
    delete_records_purgatory_purge_interval_requests: int = setting(
        INT,
        1,
        not_honoured=NO_PURGE,
        doc="After how many requests finished DeleteRecords requests are removed from the purgatory.",
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        INT, 1000, at_least(0), doc="How many incremental fetch sessions are kept."
    )
    max_request_partition_size_limit: int = setting(
        INT, 2000, at_least(1), doc="The largest number of partitions in one DescribeTopicPartitions response."
    )
