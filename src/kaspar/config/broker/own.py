"""The settings that only Kaspar has. Their names start with `kaspar.`, so that they never clash with Kafka's."""

from kaspar.config.checks import at_least, one_of, one_of_in_any_case
from kaspar.config.declaration import Importance, Settings, setting
from kaspar.config.kinds import INT, LONG, STRING
from kaspar.config.units import DAY_MS, MIB


class OwnSettings(Settings):
    kaspar_metrics_listener: str = setting(
        STRING,
        "",
        doc="The `host:port` that serves `/metrics` for Prometheus, `/healthz` and `/readyz`. Without a host it is the "
        "loopback address; `0.0.0.0` and `[::]` listen on every address. Port 0 chooses a free one. Empty disables it.",
    )
    kaspar_http_tls_certificate_file: str = setting(
        STRING,
        "",
        doc="A PEM file with the certificate chain of the HTTP pages, which are then served over TLS. A file that "
        "changes is used for new connections within seconds. Empty serves them in plain text.",
    )
    kaspar_http_tls_key_file: str = setting(
        STRING, "", doc="A PEM file with the private key of the HTTP pages, if it is not in the certificate's file."
    )
    kaspar_http_authentication: str = setting(
        STRING,
        "none",
        one_of("none", "basic", "bearer"),
        doc="How clients of the HTTP pages authenticate: `basic`, `bearer`, or not at all.",
    )
    kaspar_http_credentials_file: str = setting(
        STRING,
        "",
        doc="A file with the credentials for the HTTP pages, reloaded when it changes: for `basic` a line "
        "`name:password` "
        "for each user, for `bearer` a line for each token.",
    )
    kaspar_unauthenticated_max_connections: int = setting(
        INT,
        20_000,
        at_least(1),
        doc="The maximum number of unidentified connections: those whose client has not authenticated or, where "
        "authentication is off, has not sent a request. Beyond it, the oldest of them is closed.",
    )
    kaspar_unauthenticated_timeout_ms: int = setting(
        INT,
        60_000,
        at_least(1),
        doc="How long a client may take to authenticate or, where authentication is off, to send its first request. "
        "After that its connection is closed.",
    )
    kaspar_telemetry_max_series: int = setting(
        INT,
        100_000,
        at_least(0),
        doc="The maximum number of series of metrics pushed by clients (KIP-714). Further ones are dropped, with a "
        "log message.",
    )
    kaspar_log_file: str = setting(
        STRING, "", doc="A file for the broker's own log as JSON lines, in addition to the terminal. Empty writes none."
    )
    kaspar_log_dir: str = setting(
        STRING,
        "",
        doc="A folder that gets the log files that Kafka has: `server.log`, `controller.log`, `state-change.log`, "
        "`kafka-request.log`, `log-cleaner.log` and `kafka-authorizer.log`. Empty writes none: then all is one log.",
    )
    kaspar_log_max_file_bytes: int = setting(
        LONG,
        100 * MIB,
        at_least(1024),
        doc="The size at which a log file is renamed and another one begun.",
    )
    kaspar_log_roll_ms: int = setting(
        LONG,
        DAY_MS,
        at_least(0),
        doc="A log file has the lines of one period of this length, then it is renamed: a day by default. 0: only its "
        "size counts.",
    )
    kaspar_log_max_backups: int = setting(
        INT, 10, at_least(0), doc="How many renamed files of each log are kept; the oldest ones are removed."
    )
    kaspar_authorizer_log_file: str = setting(
        STRING,
        "",
        doc="A file that gets the authorizer's audit log as JSON lines, in place of the broker's own log. Empty leaves "
        "it in the broker's own log.",
    )
    kaspar_log_level: str = setting(
        STRING,
        "INFO",
        one_of_in_any_case("DEBUG", "INFO", "WARNING", "ERROR"),
        importance=Importance.LOW,
        doc="The lowest level that is written to the broker's own log.",
    )
    kaspar_transaction_prepared_max_age_ms: int = setting(
        LONG,
        7 * DAY_MS,
        at_least(1),
        doc="The largest age of a transaction without a timeout (`transaction.two.phase.commit.enable`), counted from "
        "its first record. An undecided one is aborted then. Until then it blocks the `read_committed` readers of its "
        "partitions.",
    )
