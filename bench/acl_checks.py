"""The cost of ACLs: a check against 100,000 of them, and a change of one. Pure Python, in this process; takes two
seconds.

python -m bench.acl_checks
"""

import time
from collections.abc import Callable

from kaspar.acls import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.acls.authorizer import StandardAuthorizer

COUNT = 100_000
ROUNDS = 20_000


def acls() -> list[Acl]:
    """ACLs of 5,000 principals, mostly literal and some prefixed; a tenth of them are for one topic."""

    def acl(name: str, pattern: PatternType, number: int) -> Acl:
        principal, allow = f"User:{number % 5000}", AclPermissionType.ALLOW
        return Acl(ResourceType.TOPIC, name, pattern, principal, "*", AclOperation.READ, allow)

    tenth = COUNT // 10
    made = [acl("shared", PatternType.LITERAL, number) for number in range(5000)]
    made += [acl(f"team{number}.", PatternType.PREFIXED, number) for number in range(tenth)]
    made += [acl(f"team{n % 1000}.orders.{n}", PatternType.LITERAL, n) for n in range(COUNT - len(made))]
    return made


def microseconds(work: Callable[[int], object], rounds: int = ROUNDS) -> float:
    began = time.process_time()
    for number in range(rounds):
        work(number)
    return (time.process_time() - began) / rounds * 1e6


def main() -> None:
    authorizer = StandardAuthorizer()
    authorizer.update(acls(), ())

    def check(principal: str, name: str) -> bool:
        return authorizer.authorize(principal, "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, name).allowed

    one = Acl(ResourceType.TOPIC, "x", PatternType.PREFIXED, "User:x", "*", AclOperation.READ, AclPermissionType.ALLOW)

    def change(_: int) -> None:
        authorizer.update([one], ())
        authorizer.update((), [one])

    print(f"{COUNT} ACLs, per check:")
    print(f"  allowed by a literal name   {microseconds(lambda n: check('User:7', 'team7.orders.7')):6.2f} µs")
    print(f"  allowed by a prefix         {microseconds(lambda n: check('User:7', 'team7.else')):6.2f} µs")
    print(f"  one of 5,000 principals     {microseconds(lambda n: check(f'User:{n % 5000}', 'shared')):6.2f} µs")
    print(f"  denied                      {microseconds(lambda n: check('User:x', 'team7.orders.7')):6.2f} µs")
    print(f"an ACL comes and goes         {microseconds(change, 2_000):6.2f} µs")


if __name__ == "__main__":
    main()
