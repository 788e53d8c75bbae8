"""What a caller may do with the cluster, by the broker's authorizer.

Pipelines, findings and the monitor's observations are not Kafka resources. Whether a caller may see and change them
follows from the caller's rights on the cluster.
"""

from kaspar.acls.acl import AclOperation
from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.session import Admin, refuse
from kaspar.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse


def cluster_operations(admin: Admin) -> frozenset[AclOperation]:
    """All of them if the cluster has no authorizer (KIP-430). Raises Refused."""
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = admin.ask_any("describeCluster", request, DescribeClusterResponse)
    refuse(response.error_code, response.error_message)
    bits = response.cluster_authorized_operations
    return frozenset(each for each in AclOperation if bits >> each & 1)


def require_cluster(admin: Admin, operation: AclOperation, what: str) -> None:
    """Raises Refused with a sentence: `what` is not permitted."""
    if operation not in cluster_operations(admin):
        name = operation.name.replace("_", " ").title().replace(" ", "")
        raise Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{what} needs {name} permission on the cluster.")
