"""The settings of the authorizer. As in Kafka they stand in the broker's file, but are not settings of the broker:
DescribeConfigs shows them like any name that it does not know.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kaspar.base.errors import InvalidSetting
from kaspar.config.broker.authorization import STANDARD_AUTHORIZER
from kaspar.config.declaration import Settings, parse_values, setting
from kaspar.config.kinds import STRING


class AuthorizerSettings(Settings):
    super_users: str = setting(
        STRING,
        "",
        doc="Principals that may do everything, separated by semicolons: `User:admin;User:CN=broker,O=example`. With "
        "an authorizer the principals of the brokers themselves must be among them, or have CLUSTER_ACTION.",
    )
    allow_everyone_if_no_acl_found: str = setting(
        STRING, "false", doc="Whether everyone may use a resource that no ACL is about."
    )


class AuthorizerConfig(NamedTuple):
    super_users: frozenset[str]
    allow_everyone_if_no_acl_found: bool


def authorizer_config(class_name: str, values: Mapping[str, str]) -> AuthorizerConfig | None:
    """Parse the authorizer's settings; None without an authorizer. Raises InvalidSetting with a sentence."""
    if class_name != STANDARD_AUTHORIZER:
        return None
    settings = AuthorizerSettings(**parse_values(AuthorizerSettings.declared, values))
    super_users = [name.strip() for name in settings.super_users.split(";") if name.strip()]
    for name in super_users:
        kind, colon, user = name.partition(":")
        if not (kind and colon and user):
            raise InvalidSetting(
                f"super.users has {name!r}, which is not a principal: write User:name, and semicolons between several"
            )
    everyone = settings.allow_everyone_if_no_acl_found.strip().lower() == "true"
    return AuthorizerConfig(frozenset(super_users), everyone)
