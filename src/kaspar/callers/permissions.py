"""What a caller may do with the cluster, as decided by the broker's authorizer.

Pipelines, findings and the monitor's observations are not Kafka resources. Access to them is decided by the caller's
permissions on the cluster.
"""

from kaspar.acls.acl import AclOperation
from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.session import Admin, refuse
from kaspar.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse


def cluster_operations(admin: Admin) -> frozenset[AclOperation]:
    """The operations that the session's principal may perform on the cluster (KIP-430): all of them if the cluster has
    no authorizer. Raises Refused.
    """
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = admin.ask_any("describeCluster", request, DescribeClusterResponse)
    refuse(response.error_code, response.error_message)
    bits = response.cluster_authorized_operations
    return frozenset(each for each in AclOperation if bits >> each & 1)


def require_cluster(admin: Admin, operation: AclOperation, what: str) -> None:
    """Raise Refused unless the operation on the cluster is permitted. `what` is the subject of the error message."""
    if operation not in cluster_operations(admin):
        name = operation.name.replace("_", " ").title().replace(" ", "")
        raise Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{what} needs {name} permission on the cluster.")
