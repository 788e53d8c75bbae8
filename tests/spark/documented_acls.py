"""The ACLs that docs/spark/security.md says a query needs."""

import re
from pathlib import Path

from kaspar.acls.acl import AclOperation, ResourceType
from tests.peers.sasl_ssl import Acl

PAGE = Path(__file__).parents[2] / "docs" / "spark" / "security.md"


def documented_acls(**topics: str) -> list[Acl]:
    """Those of the table of the page: SOURCE and SINK are its placeholders."""
    table = re.findall(r"^\| [^|]+ \| (\w+) \| `([^`]+)`[^|]* \| ([\w, ]+) \|$", PAGE.read_text(), re.M)
    assert table
    resources = {each.name.replace("_", "").lower(): each for each in ResourceType}
    operations = {each.name.replace("_", "").lower(): each for each in AclOperation}
    return [
        Acl(resources[kind.lower()], topics.get(name, name), operations[operation.strip().lower()])
        for kind, name, names in table
        for operation in names.split(",")
    ]
