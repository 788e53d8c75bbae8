"""Authorization: who may do what. The authorizer's own settings are apart (config/authorizer.py), as in Kafka."""

from kaspar.config.checks import Check
from kaspar.config.declaration import Importance, Settings, setting
from kaspar.config.kinds import STRING

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def _problem(class_name: str) -> str | None:
    if class_name in ("", STANDARD_AUTHORIZER):
        return None
    return f"Java classes cannot be loaded; use {STANDARD_AUTHORIZER}, or leave it empty to allow everything"


class AuthorizationSettings(Settings):
    authorizer_class_name: str = setting(
        STRING,
        "",
        Check(_problem, f"empty or `{STANDARD_AUTHORIZER}`"),
        importance=Importance.LOW,
        doc=f"`{STANDARD_AUTHORIZER}` checks every request against the ACLs of the cluster. Empty allows everything.",
    )
