"""All security cases in the order in which they run."""

from bench.security.bench import SecurityCase
from bench.security.gates import Acls, Quotas, few, hundred_thousand
from bench.security.tls import ConsumeOverTls, Handshakes, LogIns, ProduceOverTls


def all_cases() -> list[SecurityCase]:
    return [
        ProduceOverTls(),
        ConsumeOverTls(),
        Handshakes(),
        LogIns(),
        Quotas("quota_bytes", "a quota of bytes that is never reached", ("producer_byte_rate",)),
        Quotas(
            "quota_all",
            "quotas of bytes and time that are never reached",
            ("producer_byte_rate", "consumer_byte_rate", "request_percentage"),
        ),
        Acls("acls_few", "ACLs, five of them", few),
        Acls("acls_100k", "ACLs, 100,000 of them", hundred_thousand),
    ]
