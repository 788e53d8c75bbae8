"""Administration of a cluster over the wire client: topics, configs, log directories, elections, reassignments, and the
members of groups.

    with Admin("localhost:9092") as admin:
        for name, topic in describe_topics(admin, ["orders"]).items():
            ...

A call is sent again while it fails for a reason that passes (a broker restarts, the controller moves), until the
admin's time is up. What one topic, partition or broker is refused is part of the result; what concerns the whole call
is raised as Refused.
"""

from kaspar.client.admin.configs import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ResourceType,
    describe_configs,
    incremental_alter_configs,
)
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.deletion import delete_topics
from kaspar.client.admin.elections import ElectionType, elect_leaders
from kaspar.client.admin.groups import GroupMember, describe_group_members, remove_group_members
from kaspar.client.admin.log_dirs import (
    LogDir,
    Replica,
    ReplicaLogDirs,
    alter_replica_log_dirs,
    describe_log_dirs,
    describe_replica_log_dirs,
)
from kaspar.client.admin.reassignments import Reassignment, alter_reassignments, list_reassignments
from kaspar.client.admin.records import delete_records
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import (
    Broker,
    PartitionDescription,
    TopicDescription,
    describe_cluster,
    describe_topics,
    list_topics,
)

__all__ = [
    "Admin",
    "Broker",
    "ConfigChange",
    "ConfigOperation",
    "ConfigResource",
    "ElectionType",
    "GroupMember",
    "LogDir",
    "NewTopic",
    "PartitionDescription",
    "Reassignment",
    "Replica",
    "ReplicaLogDirs",
    "ResourceType",
    "TopicDescription",
    "alter_reassignments",
    "alter_replica_log_dirs",
    "create_topics",
    "delete_records",
    "delete_topics",
    "describe_cluster",
    "describe_configs",
    "describe_group_members",
    "describe_log_dirs",
    "describe_replica_log_dirs",
    "describe_topics",
    "elect_leaders",
    "incremental_alter_configs",
    "list_reassignments",
    "list_topics",
    "remove_group_members",
]
