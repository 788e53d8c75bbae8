"""kafka-delegation-tokens: creates, renews, expires and describes delegation tokens (KIP-48)."""

import argparse
import base64
import binascii
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from kaspar.acls.principal import Principal
from kaspar.client.admin.session import Admin
from kaspar.client.admin.tokens import (
    DelegationToken,
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
)
from kaspar.tools.command_line import CommandFailed, KafkaOptions, is_given, long_integer, open_admin, run
from kaspar.tools.kafka_errors import report
from kaspar.tools.principals import parse_principal

_WIDTHS: Final = (15, 30, 15, 15, 25, 15, 15, 15)
_TITLES: Final = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")

_REQUIRED: Final = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
    "describe": (),
}
_FORBIDDEN: Final = {
    "create": ("hmac", "renew-time-period", "expiry-time-period"),
    "renew": ("renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"),
    "expire": ("renew", "max-life-time-period", "renew-time-period", "owner-principal"),
    "describe": ("renew-time-period", "max-life-time-period", "hmac", "expiry-time-period"),
}


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-delegation-tokens",
        "Create, renew, expire and describe delegation tokens: a client logs in with one by SCRAM, as its owner.",
        example="kafka-delegation-tokens --bootstrap-server localhost:9092 --command-config alice.properties --create "
        "--max-life-time-period -1 --renewer-principal User:bob",
    )
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    options.add_argument(
        "--command-config",
        metavar="FILE",
        help="a properties file with settings of the client, with those of its user: brokers serve tokens only to "
        "clients that have authenticated, and not with a token. REQUIRED",
    )
    options.add_argument("--create", action="store_true", help="create a token")
    options.add_argument("--renew", action="store_true", help="let the token --hmac expire later")
    options.add_argument("--expire", action="store_true", help="let the token --hmac expire sooner, or at once")
    options.add_argument(
        "--describe",
        action="store_true",
        help="list the tokens that the user owns or may describe; with --owner-principal, those of these owners",
    )
    options.add_argument(
        "--owner-principal",
        action="append",
        metavar="TYPE:NAME",
        help="with --create: the owner of the token, if not the user. With --describe: owners; may be repeated",
    )
    options.add_argument(
        "--renewer-principal",
        action="append",
        metavar="TYPE:NAME",
        help="with --create: who may renew the token beside its owner; may be repeated",
    )
    options.add_argument(
        "--max-life-time-period",
        type=long_integer,
        metavar="MS",
        help="with --create: until when the token can be renewed; -1 for the brokers' delegation.token.max.lifetime.ms",
    )
    options.add_argument(
        "--renew-time-period",
        type=long_integer,
        metavar="MS",
        help="with --renew: when the token expires, from now; -1 for the brokers' delegation.token.expiry.time.ms",
    )
    options.add_argument(
        "--expiry-time-period",
        type=long_integer,
        metavar="MS",
        help="with --expire: when the token expires, from now; -1 for at once",
    )
    options.add_argument("--hmac", help="the HMAC of a token in base 64, as --create prints it")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    _check(parser, options)
    return run(lambda: _run(options), report)


def _check(parser: KafkaOptions, options: argparse.Namespace) -> None:
    actions = [action for action in _REQUIRED if is_given(options, action)]
    if len(actions) != 1:
        parser.fail("Command must include exactly one action: --create, --renew, --expire or --describe")
    (action,) = actions
    parser.require(options, "bootstrap-server", "command-config", *_REQUIRED[action])
    parser.exclude(options, action, _FORBIDDEN[action])


def _run(options: argparse.Namespace) -> None:
    with open_admin(options.bootstrap_server, options.command_config, client_id="kafka-delegation-tokens") as admin:
        if options.create:
            _create(admin, options)
        elif options.renew:
            _renew(admin, options.hmac, options.renew_time_period)
        elif options.expire:
            _expire(admin, options.hmac, options.expiry_time_period)
        else:
            _describe(admin, _principals(options.owner_principal))


def _principals(texts: Iterable[str] | None) -> list[Principal]:
    return [parse_principal(text) for text in texts or ()]


def _listed(principals: Iterable[Principal]) -> str:
    return f"[{', '.join(map(str, principals))}]"


def _create(admin: Admin, options: argparse.Namespace) -> None:
    renewers, lifetime_ms = _principals(options.renewer_principal), options.max_life_time_period
    print(
        f"Calling create token operation with renewers :{_listed(renewers)} , max-life-time-period :{lifetime_ms}",
        flush=True,
    )
    owners = _principals(options.owner_principal)
    owner = owners[0] if owners else None
    token = create_token(admin, owner=owner, renewers=renewers, max_lifetime_ms=lifetime_ms)
    print(f"Created delegation token with tokenId : {token.token_id}")
    print(token_table([token]), end="")


def _renew(admin: Admin, hmac: str, period_ms: int) -> None:
    print(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{period_ms}", flush=True)
    expires_ms = renew_token(admin, _decoded(hmac), period_ms)
    print(f"Completed renew operation. New expiry date : {_date(expires_ms)}", end="")


def _expire(admin: Admin, hmac: str, period_ms: int) -> None:
    print(f"Calling expire token operation with hmac :{hmac} , expire-time-period :{period_ms}", flush=True)
    expires_ms = expire_token(admin, _decoded(hmac), period_ms)
    print(f"Completed expire operation. New expiry date : {_date(expires_ms)}", end="")


def _decoded(hmac: str) -> bytes:
    try:
        return base64.b64decode(hmac, validate=True)
    except binascii.Error:
        raise CommandFailed(f"The HMAC {hmac} is not in base 64") from None


def _describe(admin: Admin, owners: Sequence[Principal]) -> None:
    if owners:
        print(f"Calling describe token operation for owners: {_listed(owners)}", flush=True)
    else:
        print("Calling describe token operation for current user.", flush=True)
    tokens = describe_tokens(admin, owners or None)
    print(f"Total number of tokens : {len(tokens)}", end="")
    print(token_table(tokens), end="")


def token_table(tokens: Iterable[DelegationToken]) -> str:
    """The table, with an empty line before each line."""
    return "".join(
        f"\n{_row(cells)}\n"
        for cells in (
            _TITLES,
            *(
                (
                    token.token_id,
                    base64.b64encode(token.hmac).decode(),
                    str(token.owner),
                    str(token.requester),
                    _listed(token.renewers),
                    _date(token.issued_ms),
                    _date(token.expires_ms),
                    _date(token.max_expires_ms),
                )
                for token in tokens
            ),
        )
    )


def _row(cells: Iterable[str]) -> str:
    return " ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True))


def _date(timestamp_ms: int) -> str:
    """The local time, to the minute."""
    return datetime.fromtimestamp(timestamp_ms / 1000).strftime("%Y-%m-%dT%H:%M")


if __name__ == "__main__":
    sys.exit(main())
