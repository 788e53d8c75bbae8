"""Who can reach the brokers, and certificates that expire."""

from collections.abc import Iterator
from typing import Final

from kaspar.base.sentences import some
from kaspar.monitor.doctor.check import check
from kaspar.monitor.doctor.finding import Fault, Severity
from kaspar.monitor.doctor.listeners import Listener, listeners_of
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import Settings

DAY_MS: Final = 24 * 3600 * 1000
SOON_DAYS: Final = 30


@check(
    "plaintext-listener",
    Severity.WARNING,
    title="A listener without TLS is open to other machines",
    why="Anyone on the network path can read and modify records and passwords.",
    remedy="Listen on 127.0.0.1, or use SSL or SASL_SSL for the listener in listener.security.protocol.map; kaspar "
    "certs creates certificates.",
)
def plaintext_listener(looks: Looks) -> Iterator[Fault]:
    for broker_id, settings in sorted(looks.last.broker_settings.items()):
        found = [each for each in _reachable(settings) if not each.has_tls]
        if found:
            yield Fault(f"broker {broker_id}", f"Without TLS: {some(found)}.", "kaspar certs")


@check(
    "no-authorizer",
    Severity.WARNING,
    title="Anyone who can reach a broker is allowed everything",
    why="Brokers that are reachable from other machines have no authorizer, or allow everything without a matching "
    "ACL.",
    remedy="Set authorizer.class.name and super.users (kaspar up --secure does), and add ACLs with kaspar acl.",
)
def no_authorizer(looks: Looks) -> Iterator[Fault]:
    for broker_id, settings in sorted(looks.last.broker_settings.items()):
        if not _reachable(settings) or "authorizer.class.name" not in settings:
            continue
        if not settings["authorizer.class.name"]:
            yield Fault(f"broker {broker_id}", "It has no authorizer.class.name.", "kaspar up --secure")
        elif settings.get("allow.everyone.if.no.acl.found") == "true":
            detail = "allow.everyone.if.no.acl.found is true: a topic without ACLs is open to all."
            yield Fault(f"broker {broker_id}", detail, looks.access.kaspar("acl", "list"))


def _reachable(settings: Settings) -> list[Listener]:
    return [each for each in listeners_of(settings) if not each.is_loopback]


@check(
    "certificate-expired",
    Severity.PROBLEM,
    title="A broker's certificate has expired",
    why="Clients refuse to connect.",
    remedy="Replace the keystore; brokers load the new file without a restart once ssl.keystore.location is set again.",
)
def certificate_expired(looks: Looks) -> Iterator[Fault]:
    for each in looks.last.certificates:
        if each.not_after_ms <= looks.last.at_ms:
            days = (looks.last.at_ms - each.not_after_ms) / DAY_MS
            yield Fault(
                f"broker {each.broker_id}",
                f"The certificate of {each.listener} expired {days:.0f} days ago.",
                "kaspar certs",
            )


@check(
    "certificate-expires",
    Severity.WARNING,
    title="A broker's certificate expires soon",
    why="After that, clients refuse to connect.",
    remedy="Replace the keystore before then.",
)
def certificate_expires(looks: Looks) -> Iterator[Fault]:
    for each in looks.last.certificates:
        days = (each.not_after_ms - looks.last.at_ms) / DAY_MS
        if 0 < days < SOON_DAYS:
            yield Fault(
                f"broker {each.broker_id}",
                f"The certificate of {each.listener} expires in {days:.0f} days.",
                "kaspar certs",
            )
