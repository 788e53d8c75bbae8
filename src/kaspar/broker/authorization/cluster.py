"""Guards of the APIs that need a permission on the cluster."""

from dataclasses import dataclass
from typing import Any, Final

from kaspar.acls.acl import AclOperation, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.broker.authorization.guards import MESSAGES, Call, Guard, Need, Whole, need
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ResponseEntityData,
    ResponseEntryData,
)
from kaspar.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kaspar.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kaspar.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kaspar.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from kaspar.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from kaspar.protocol.messages.describe_acls import DescribeAclsResponse
from kaspar.protocol.messages.describe_client_quotas import DescribeClientQuotasResponse
from kaspar.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from kaspar.protocol.messages.describe_quorum import DescribeQuorumResponse
from kaspar.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kaspar.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kaspar.protocol.messages.follow_image import FollowImageResponse
from kaspar.protocol.messages.list_config_resources import ListConfigResourcesResponse
from kaspar.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kaspar.protocol.messages.move_controller import MoveControllerResponse
from kaspar.protocol.messages.submit_event import SubmitEventResponse
from kaspar.protocol.messages.unregister_broker import UnregisterBrokerResponse
from kaspar.protocol.messages.update_features import UpdateFeaturesResponse
from kaspar.protocol.messages.write_txn_fences import TxnFenceResult, WriteTxnFencesRequest, WriteTxnFencesResponse
from kaspar.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kaspar.protocol.schema import Message

_ALTER: Final = need(AclOperation.ALTER, ResourceType.CLUSTER)
_DESCRIBE: Final = need(AclOperation.DESCRIBE, ResourceType.CLUSTER)
_CLUSTER_ACTION: Final = need(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)


def _create_acls(context: RequestContext, request: CreateAclsRequest, code: ErrorCode) -> Message:
    result = AclCreationResult(error_code=code, error_message=MESSAGES[code])
    return CreateAclsResponse(results=(result,) * len(request.creations))


def _delete_acls(context: RequestContext, request: DeleteAclsRequest, code: ErrorCode) -> Message:
    result = DeleteAclsFilterResult(error_code=code, error_message=MESSAGES[code], matching_acls=())
    return DeleteAclsResponse(filter_results=(result,) * len(request.filters))


def _describe_acls(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return DescribeAclsResponse(error_code=code, error_message=MESSAGES[code], resources=())


def _elect_leaders(context: RequestContext, request: ElectLeadersRequest, code: ErrorCode) -> Message:
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    PartitionResult(partition_id=index, error_code=code, error_message=MESSAGES[code])
                    for index in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )


def _alter_partition_reassignments(
    context: RequestContext, request: AlterPartitionReassignmentsRequest, code: ErrorCode
) -> Message:
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=MESSAGES[code],
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=code, error_message=MESSAGES[code]
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _list_partition_reassignments(
    context: RequestContext, request: ListPartitionReassignmentsRequest, code: ErrorCode
) -> Message:
    topics = tuple(
        OngoingTopicReassignment(
            name=topic.name,
            partitions=tuple(OngoingPartitionReassignment(partition_index=index) for index in topic.partition_indexes),
        )
        for topic in request.topics or ()
    )
    return ListPartitionReassignmentsResponse(error_code=code, error_message=MESSAGES[code], topics=topics)


def _alter_replica_log_dirs(context: RequestContext, request: AlterReplicaLogDirsRequest, code: ErrorCode) -> Message:
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index in topic.partitions
                ),
            )
            for directory in request.dirs
            for topic in directory.topics
        )
    )


def _describe_log_dirs(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return DescribeLogDirsResponse(error_code=code, results=())


def _describe_quorum(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return DescribeQuorumResponse(error_code=code, error_message=MESSAGES[code], topics=())


def _update_features(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return UpdateFeaturesResponse(error_code=code, error_message=MESSAGES[code])


def _unregister_broker(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return UnregisterBrokerResponse(error_code=code, error_message=MESSAGES[code])


def _list_config_resources(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return ListConfigResourcesResponse(error_code=code, config_resources=())


def _describe_client_quotas(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return DescribeClientQuotasResponse(error_code=code, error_message=None, entries=None)


def _alter_client_quotas(context: RequestContext, request: AlterClientQuotasRequest, code: ErrorCode) -> Message:
    return AlterClientQuotasResponse(
        entries=tuple(
            ResponseEntryData(
                error_code=code,
                error_message=MESSAGES[code],
                entity=tuple(
                    ResponseEntityData(entity_type=each.entity_type, entity_name=each.entity_name)
                    for each in entry.entity
                ),
            )
            for entry in request.entries
        )
    )


def _describe_user_scram_credentials(
    context: RequestContext, request: DescribeUserScramCredentialsRequest, code: ErrorCode
) -> Message:
    result = DescribeUserScramCredentialsResult(user="", error_code=code, error_message=None, credential_infos=())
    return DescribeUserScramCredentialsResponse(
        error_code=code, error_message=None, results=(result,) * len(request.users or ())
    )


def _alter_user_scram_credentials(
    context: RequestContext, request: AlterUserScramCredentialsRequest, code: ErrorCode
) -> Message:
    names = [each.name for each in request.deletions] + [each.name for each in request.upsertions]
    return AlterUserScramCredentialsResponse(
        results=tuple(
            AlterUserScramCredentialsResult(user=name, error_code=code, error_message=MESSAGES[code])
            for name in dict.fromkeys(names)
        )
    )


def _follow_image(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return FollowImageResponse(error_code=code, error_message=MESSAGES[code])


def _submit_event(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return SubmitEventResponse(error_code=code, error_message=MESSAGES[code])


def _move_controller(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return MoveControllerResponse(error_code=code, error_message=MESSAGES[code])


def _write_txn_fences(context: RequestContext, request: WriteTxnFencesRequest, code: ErrorCode) -> Message:
    return WriteTxnFencesResponse(results=(TxnFenceResult(error_code=code),) * len(request.fences))


CREATE_ACLS: Final[Guard] = Whole(_ALTER, _create_acls)
DELETE_ACLS: Final[Guard] = Whole(_ALTER, _delete_acls)
DESCRIBE_ACLS: Final[Guard] = Whole(_DESCRIBE, _describe_acls)
ELECT_LEADERS: Final[Guard] = Whole(_ALTER, _elect_leaders)
ALTER_PARTITION_REASSIGNMENTS: Final[Guard] = Whole(_ALTER, _alter_partition_reassignments)
LIST_PARTITION_REASSIGNMENTS: Final[Guard] = Whole(_DESCRIBE, _list_partition_reassignments)
ALTER_REPLICA_LOG_DIRS: Final[Guard] = Whole(_ALTER, _alter_replica_log_dirs)
DESCRIBE_LOG_DIRS: Final[Guard] = Whole(_DESCRIBE, _describe_log_dirs)
DESCRIBE_QUORUM: Final[Guard] = Whole(_DESCRIBE, _describe_quorum)
UPDATE_FEATURES: Final[Guard] = Whole(_ALTER, _update_features)
UNREGISTER_BROKER: Final[Guard] = Whole(_ALTER, _unregister_broker)
LIST_CONFIG_RESOURCES: Final[Guard] = Whole(
    need(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER), _list_config_resources
)
DESCRIBE_CLIENT_QUOTAS: Final[Guard] = Whole(
    need(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER), _describe_client_quotas
)
ALTER_CLIENT_QUOTAS: Final[Guard] = Whole(need(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER), _alter_client_quotas)
DESCRIBE_USER_SCRAM_CREDENTIALS: Final[Guard] = Whole(_DESCRIBE, _describe_user_scram_credentials)
ALTER_USER_SCRAM_CREDENTIALS: Final[Guard] = Whole(_ALTER, _alter_user_scram_credentials)
FOLLOW_IMAGE: Final = Whole(_CLUSTER_ACTION, _follow_image)
SUBMIT_EVENT: Final = Whole(_CLUSTER_ACTION, _submit_event)
MOVE_CONTROLLER: Final[Guard] = Whole(_ALTER, _move_controller)
WRITE_TXN_FENCES: Final = Whole(_CLUSTER_ACTION, _write_txn_fences)


@dataclass(frozen=True, slots=True)
class WriteTxnMarkers:
    """The permission to write transaction markers: CLUSTER_ACTION for brokers, or ALTER for an operator who ends a
    hanging transaction (KIP-664).
    """

    needs: tuple[Need, ...] = (
        Need(AclOperation.ALTER, ResourceType.CLUSTER, "CLUSTER_ACTION is required"),
        _CLUSTER_ACTION,
    )

    def __call__(self, call: Call, request: WriteTxnMarkersRequest) -> HandlerResult:
        either, other = self.needs
        if call.caller.is_authorized_on_cluster(either.operation, quietly=True) or other.is_authorized(call.caller):
            return call.proceed(request)
        return WriteTxnMarkersResponse(
            markers=tuple(
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=tuple(
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=tuple(
                                WritableTxnMarkerPartitionResult(partition_index=index, error_code=other.code)
                                for index in topic.partition_indexes
                            ),
                        )
                        for topic in marker.topics
                    ),
                )
                for marker in request.markers
            )
        )


@dataclass(frozen=True, slots=True)
class ClusterOperations:
    """Every client may send the request. Only the authorized operations in the response need DESCRIBE."""

    needs: tuple[Need, ...] = (
        Need(AclOperation.DESCRIBE, ResourceType.CLUSTER, "no authorized operations (0)", of="authorized operations"),
    )

    def __call__(self, call: Call, request: Message) -> HandlerResult:
        return call.proceed(request)


WRITE_TXN_MARKERS: Final[Guard] = WriteTxnMarkers()
DESCRIBE_CLUSTER: Final[Guard] = ClusterOperations()
