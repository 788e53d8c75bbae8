"""DescribeAcls: the ACLs that a filter matches, by resource. Without an authorizer it is refused."""

import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Final

from kaspar.acls.acl import Acl, AclFilter, select
from kaspar.broker.handlers import no_authorizer
from kaspar.broker.handlers.acls import NO_MESSAGE, filter_of
from kaspar.metadata.images import ImageSource
from kaspar.network.api import HandlerResult, PartlyEncoded, RequestContext
from kaspar.network.large_requests import LargeRequests
from kaspar.protocol import codec
from kaspar.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

AT_ONCE: Final = 500
"""If there are more ACLs, they are searched in a thread."""


class DescribeAclsHandler:
    def __init__(self, images: ImageSource, large_requests: LargeRequests) -> None:
        self._images = images
        self._large_requests = large_requests

    def __call__(self, context: RequestContext, request: DescribeAclsRequest) -> HandlerResult:
        acls, wanted = self._images.current.acls, filter_of(request)
        if len(acls) > AT_ONCE:
            return self._large_requests.in_thread(functools.partial(_encoded, acls, wanted, context.version))
        return DescribeAclsResponse(error_message=NO_MESSAGE, resources=tuple(_resources(acls, wanted)))


def _encoded(acls: Mapping[str, Acl], wanted: AclFilter, version: int) -> PartlyEncoded:
    resources = [codec.write(each, version) for each in _resources(acls, wanted)]
    return PartlyEncoded(DescribeAclsResponse(error_message=NO_MESSAGE, resources=()), {"resources": resources}, {})


def _resources(acls: Mapping[str, Acl], wanted: AclFilter) -> Iterator[DescribeAclsResource]:
    selected = sorted(acl for _, acl in select(acls.items(), wanted))
    for (resource_type, name, pattern_type), of_resource in itertools.groupby(selected, key=lambda acl: acl[:3]):
        yield DescribeAclsResource(
            resource_type=resource_type,
            resource_name=name,
            pattern_type=pattern_type,
            acls=tuple(
                AclDescription(
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
                for acl in of_resource
            ),
        )


def handle(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Handle a request without an authorizer."""
    return DescribeAclsResponse(error_code=no_authorizer.CODE, error_message=no_authorizer.MESSAGE, resources=())
