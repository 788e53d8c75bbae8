"""One module for each API. broker/wiring.py creates the handlers; broker/served_apis.py has the versions.

A module is imported when it is first used as an attribute of this package, so that a start loads only what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kaspar.broker.handlers import (  # noqa: F401
        add_offsets_to_txn,
        add_partitions_to_txn,
        alter_client_quotas,
        alter_configs,
        alter_partition_reassignments,
        alter_replica_log_dirs,
        alter_user_scram_credentials,
        api_versions,
        authorized_operations,
        compact_topics,
        consumer_group_describe,
        consumer_group_heartbeat,
        create_acls,
        create_delegation_token,
        create_partitions,
        create_topics,
        delete_acls,
        delete_groups,
        delete_records,
        delete_topics,
        describe_acls,
        describe_client_quotas,
        describe_cluster,
        describe_configs,
        describe_delegation_token,
        describe_groups,
        describe_log_dirs,
        describe_producers,
        describe_quorum,
        describe_topic_partitions,
        describe_transactions,
        describe_user_scram_credentials,
        elect_leaders,
        end_txn,
        expire_delegation_token,
        find_coordinator,
        follow_image,
        get_telemetry_subscriptions,
        heartbeat,
        incremental_alter_configs,
        init_producer_id,
        join_group,
        leave_group,
        list_config_resources,
        list_groups,
        list_offsets,
        list_partition_reassignments,
        list_timestamps,
        list_transactions,
        metadata,
        move_controller,
        offset_commit,
        offset_delete,
        offset_fetch,
        offset_for_leader_epoch,
        push_telemetry,
        renew_delegation_token,
        sasl_authenticate,
        sasl_handshake,
        submit_event,
        sync_group,
        txn_offset_commit,
        unregister_broker,
        update_features,
        write_txn_fences,
        write_txn_markers,
    )
else:

    def __getattr__(name: str) -> Any:
        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as problem:
            if problem.name != f"{__name__}.{name}":
                raise
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
