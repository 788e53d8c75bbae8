"""Groups of Kafka Streams' own protocol, which are not served yet."""

from kaspar.config.checks import at_least
from kaspar.config.declaration import Scope, Settings, setting
from kaspar.config.kinds import INT, MAX_INT
from kaspar.config.reasons import NO_STREAMS_GROUPS
from kaspar.config.units import MINUTE_MS


class StreamsGroupSettings(Settings, not_honoured=NO_STREAMS_GROUPS):
    group_streams_assignment_interval_ms: int = setting(
        INT,
        1000,
        at_least(0),
        scope=Scope.CLUSTER_WIDE,
        doc="The least time between two assignments of a streams group.",
    )
    group_streams_min_assignment_interval_ms: int = setting(
        INT, 0, at_least(0), doc="The lowest `streams.assignment.interval.ms` that a group may set."
    )
    group_streams_max_assignment_interval_ms: int = setting(
        INT, 15_000, at_least(0), doc="The highest `streams.assignment.interval.ms` that a group may set."
    )
    group_streams_heartbeat_interval_ms: int = setting(
        INT, 5000, at_least(1), doc="How often members of a streams group send heartbeats."
    )
    group_streams_min_heartbeat_interval_ms: int = setting(
        INT, 5000, at_least(1), doc="The lowest `streams.heartbeat.interval.ms` that a group may set."
    )
    group_streams_max_heartbeat_interval_ms: int = setting(
        INT, 15_000, at_least(1), doc="The highest `streams.heartbeat.interval.ms` that a group may set."
    )
    group_streams_session_timeout_ms: int = setting(
        INT, 45_000, at_least(1), doc="A member of a streams group silent for this long is removed."
    )
    group_streams_min_session_timeout_ms: int = setting(
        INT, 45_000, at_least(1), doc="The lowest `streams.session.timeout.ms` that a group may set."
    )
    group_streams_max_session_timeout_ms: int = setting(
        INT, MINUTE_MS, at_least(1), doc="The highest `streams.session.timeout.ms` that a group may set."
    )
    group_streams_initial_rebalance_delay_ms: int = setting(
        INT, 3000, at_least(0), doc="How long a new streams group waits for more members."
    )
    group_streams_max_size: int = setting(INT, MAX_INT, at_least(1), doc="How many members a streams group may have.")
    group_streams_num_standby_replicas: int = setting(
        INT, 0, at_least(0), doc="How many standby replicas each task gets."
    )
    group_streams_max_standby_replicas: int = setting(
        INT, 2, at_least(0), doc="The highest `streams.num.standby.replicas` that a group may set."
    )
