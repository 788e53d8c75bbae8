"""The context of the security cases, in addition to bench/bench.py: certificates, users, ACLs and quotas."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.bench import Bench
from bench.cases import CaseOf
from bench.programs import LoadError, TlsPrograms
from bench.security.sides import MECHANISM, Certificates
from bench.sides import Side
from kaspar.acls import Acl
from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from kaspar.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from kaspar.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kaspar.security.scram import MECHANISM_TYPES, MIN_ITERATIONS, salted_password
from tests.peers.process import BrokerProcess
from tests.peers.raw_client import RawClient

ACLS_OF_A_REQUEST = 5000
_ADMIN_TIMEOUT_SECONDS = 120.0
_SALT = b"the salt of a benchmark"


@dataclass(slots=True)
class SecurityBench(Bench):
    tools: TlsPrograms
    certificates: Certificates = field(kw_only=True)

    def _warm_up(self, broker: BrokerProcess) -> None:
        """Do nothing: every case warms up what it measures, because most of these brokers get only one kind of load."""

    def drop_broker(self, side: Side) -> None:
        broker = self._warm.pop(side.name, None)
        if broker is not None:
            broker.kill()
            shutil.rmtree(broker.folder, ignore_errors=True)

    @property
    def tls_settings(self) -> tuple[str, ...]:
        """Settings of a librdkafka client, as arguments of the load program."""
        authority = self.certificates.authority
        return "-X", "security.protocol=ssl", "-X", f"ssl.ca.location={authority}"


class SecurityCase(CaseOf[SecurityBench, Side]):
    """A case of single brokers with secured listeners."""


def create_user(broker: BrokerProcess, name: str, password: str) -> None:
    """Create a user for SCRAM, with the fewest iterations that Kafka allows, which is also its default."""
    mechanism = next(code for code, known in MECHANISM_TYPES.items() if known == MECHANISM)
    upsertion = ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=MIN_ITERATIONS,
        salt=_SALT,
        salted_password=salted_password(MECHANISM, password, _SALT, MIN_ITERATIONS),
    )
    request = AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,))
    with _client(broker) as client:
        response = client.call(request, AlterUserScramCredentialsResponse)
    _check("a user", [result.error_code for result in response.results])


def create_acls(broker: BrokerProcess, acls: Sequence[Acl]) -> None:
    with _client(broker) as client:
        for first in range(0, len(acls), ACLS_OF_A_REQUEST):
            creations = tuple(map(_creation, acls[first : first + ACLS_OF_A_REQUEST]))
            response = client.call(CreateAclsRequest(creations=creations), CreateAclsResponse)
            _check("an ACL", [result.error_code for result in response.results])


def set_quotas(broker: BrokerProcess, quotas: Mapping[str, float], *, remove: bool = False) -> None:
    """Set quotas for all users that have none of their own."""
    entry = RequestEntryData(
        entity=(RequestEntityData(entity_type="user", entity_name=None),),
        ops=tuple(OpData(key=key, value=value, remove=remove) for key, value in quotas.items()),
    )
    with _client(broker) as client:
        request = AlterClientQuotasRequest(entries=(entry,), validate_only=False)
        response = client.call(request, AlterClientQuotasResponse)
    _check("a quota", [each.error_code for each in response.entries])


def _client(broker: BrokerProcess) -> RawClient:
    return RawClient(broker.port, timeout=_ADMIN_TIMEOUT_SECONDS)


def _creation(acl: Acl) -> AclCreation:
    return AclCreation(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        resource_pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _check(what: str, codes: Sequence[int]) -> None:
    for code in codes:
        if code != ErrorCode.NONE:
            raise LoadError(f"{what} was refused: {ErrorCode(code).name}")
