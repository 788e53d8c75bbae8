"""The settings that are Kaspar's own. Their names start with `kaspar.`, so that they never meet one of Kafka's."""

from kaspar.config.checks import at_least, one_of_in_any_case
from kaspar.config.declaration import Importance, Settings, setting
from kaspar.config.kinds import LONG, STRING
from kaspar.config.topic import DAY_MS


class OwnSettings(Settings):
    kaspar_metrics_listener: str = setting(
        STRING,
        "",
        doc="The `host:port` on which Prometheus reads metrics and `/healthz` and `/readyz` answer. "
        "Port 0 takes a free one. Empty switches it off.",
    )
    kaspar_log_file: str = setting(
        STRING, "", doc="A file that gets the broker's own log as JSON lines, besides the terminal. Empty writes none."
    )
    kaspar_log_level: str = setting(
        STRING,
        "INFO",
        one_of_in_any_case("DEBUG", "INFO", "WARNING", "ERROR"),
        importance=Importance.LOW,
        doc="The least important lines that the broker's own log keeps.",
    )
    kaspar_transaction_prepared_max_age_ms: int = setting(
        LONG,
        7 * DAY_MS,
        at_least(1),
        doc="How old a transaction without a timeout (`transaction.two.phase.commit.enable`) may become from its first "
        "record on. If its owner has not decided by then it is aborted: until then it holds up every `read_committed` "
        "reader of its partitions.",
    )
