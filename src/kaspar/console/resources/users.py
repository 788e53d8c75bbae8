"""Users that log in by SCRAM: listed, created, removed, and their passwords changed."""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kaspar.console import users
from kaspar.console.http.endpoint import Call, changes, reads
from kaspar.console.users import Credential, UserPage

_WITHOUT_LOG_IN: Final = (
    "The console connects to the brokers without authentication. These users apply to listeners that use SASL with "
    "SCRAM."
)


@dataclass(frozen=True, slots=True)
class UsersView:
    page: UserPage
    mechanisms: tuple[str, ...]
    remark: str


@dataclass(frozen=True, slots=True)
class PasswordBody:
    password: str = field(repr=False)
    mechanism: str = "SCRAM-SHA-512"
    iterations: int = 4096

    @property
    def credential(self) -> Credential:
        return Credential(self.mechanism, self.iterations)


@reads("/api/users")
async def listed(call: Call) -> UsersView:
    found = await call.shared("users", users.list_users)
    limit = call.limit()
    page = users.select(found, call.text("search"), call.number("offset", 0), limit)
    protocol = call.context.config.admin.get("security.protocol", "PLAINTEXT").upper()
    return UsersView(page, users.MECHANISMS, "" if protocol.startswith("SASL") else _WITHOUT_LOG_IN)


@changes("POST", "/api/users/{user:rest}", action="create user", resource="user {user}")
async def create(call: Call) -> None:
    body = await call.body(PasswordBody)
    call.note(body.mechanism)
    await call.ask(
        partial(users.create, name=call.path["user"], password=body.password, credential=body.credential),
    )


@changes("PUT", "/api/users/{user:rest}", action="change password", resource="user {user}")
async def change_password(call: Call) -> None:
    body = await call.body(PasswordBody)
    call.note(body.mechanism)
    await call.ask(
        partial(users.change_password, name=call.path["user"], password=body.password, credential=body.credential),
    )


@changes("DELETE", "/api/users/{user:rest}", action="remove user", resource="user {user}")
async def remove(call: Call) -> None:
    mechanisms = tuple(call.texts("mechanism")) or users.MECHANISMS
    call.note(", ".join(mechanisms))
    await call.ask(partial(users.remove, name=call.path["user"], mechanisms=mechanisms))


ENDPOINTS = (listed, create, change_password, remove)
