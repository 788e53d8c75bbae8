"""Tiered storage."""

from kaspar.config.checks import at_least
from kaspar.config.declaration import Importance, Scope, Settings, setting
from kaspar.config.kinds import BOOLEAN, INT, LONG, MAX_LONG, STRING
from kaspar.config.reasons import NO_TIERS
from kaspar.config.units import GIB


class TierSettings(Settings, not_honoured=NO_TIERS):
    remote_log_storage_system_enable: bool = setting(BOOLEAN, False, doc="Switches tiered storage on.")
    remote_log_storage_manager_class_name: str | None = setting(
        STRING, None, doc="The class that stores segments remotely."
    )
    remote_log_storage_manager_class_path: str | None = setting(STRING, None, doc="Where that class is found.")
    remote_log_storage_manager_impl_prefix: str = setting(
        STRING, "rsm.config.", doc="The prefix of that class's own settings."
    )
    remote_log_metadata_manager_class_name: str = setting(
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        doc="The class that keeps the list of remote segments.",
    )
    remote_log_metadata_manager_class_path: str | None = setting(STRING, None, doc="Where that class is found.")
    remote_log_metadata_manager_impl_prefix: str = setting(
        STRING, "rlmm.config.", doc="The prefix of that class's own settings."
    )
    remote_log_metadata_manager_listener_name: str | None = setting(STRING, None, doc="The listener that class uses.")
    remote_log_metadata_custom_metadata_max_bytes: int = setting(
        INT, 128, at_least(0), importance=Importance.LOW, doc="The largest custom metadata of a remote segment."
    )
    remote_log_index_file_cache_total_size_bytes: int = setting(
        LONG,
        1 * GIB,
        at_least(1),
        importance=Importance.LOW,
        scope=Scope.CLUSTER_WIDE,
        doc="The local space for remote index files.",
    )
    remote_log_manager_thread_pool_size: int = setting(INT, 2, at_least(1), doc="How many threads do remote work.")
    remote_log_manager_copier_thread_pool_size: int = setting(
        INT, 10, at_least(1), scope=Scope.CLUSTER_WIDE, doc="How many threads copy segments."
    )
    remote_log_manager_expiration_thread_pool_size: int = setting(
        INT, 10, at_least(1), scope=Scope.CLUSTER_WIDE, doc="How many threads expire segments."
    )
    remote_log_manager_follower_thread_pool_size: int = setting(
        INT, 2, at_least(1), scope=Scope.CLUSTER_WIDE, doc="How many threads follow remote segments on followers."
    )
    remote_log_manager_task_interval_ms: int = setting(
        LONG, 30_000, at_least(1), importance=Importance.LOW, doc="How often the broker checks for remote work."
    )
    remote_log_manager_copy_max_bytes_per_second: int = setting(
        LONG, MAX_LONG, at_least(1), scope=Scope.CLUSTER_WIDE, doc="How many bytes a second may be copied."
    )
    remote_log_manager_copy_quota_window_num: int = setting(
        INT, 11, at_least(1), doc="How many samples that rate is measured over."
    )
    remote_log_manager_copy_quota_window_size_seconds: int = setting(
        INT, 1, at_least(1), doc="How long each sample is."
    )
    remote_log_manager_fetch_max_bytes_per_second: int = setting(
        LONG, MAX_LONG, at_least(1), scope=Scope.CLUSTER_WIDE, doc="How many bytes a second may be fetched."
    )
    remote_log_manager_fetch_quota_window_num: int = setting(
        INT, 11, at_least(1), doc="How many samples that rate is measured over."
    )
    remote_log_manager_fetch_quota_window_size_seconds: int = setting(
        INT, 1, at_least(1), doc="How long each sample is."
    )
    remote_log_reader_threads: int = setting(
        INT, 10, at_least(1), scope=Scope.CLUSTER_WIDE, doc="How many threads read remote segments."
    )
    remote_log_reader_max_pending_tasks: int = setting(INT, 100, at_least(1), doc="How many remote reads may wait.")
    remote_fetch_max_wait_ms: int = setting(
        INT, 500, at_least(1), scope=Scope.CLUSTER_WIDE, doc="How long a fetch waits for remote data."
    )
    remote_list_offsets_request_timeout_ms: int = setting(
        LONG, 30_000, at_least(1), scope=Scope.CLUSTER_WIDE, doc="How long an offset look-up waits for remote data."
    )
    follower_fetch_last_tiered_offset_enable: bool = setting(
        BOOLEAN,
        False,
        scope=Scope.CLUSTER_WIDE,
        doc="Whether an empty follower starts from the last offset in the remote tier.",
    )
