"""What the options of Krb5LoginModule ask for."""

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.security.jaas import parse_jaas
from kaspar.security.krb5_login_module import MODULE, KerberosLogin, kerberos_login, service_name


def login(options: str) -> KerberosLogin:
    return kerberos_login(parse_jaas(f"{MODULE} required {options};"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            'useKeyTab=true storeKey=true keyTab="/etc/a b.keytab" principal="kafka/host@REALM"',
            KerberosLogin("kafka/host@REALM", "FILE:/etc/a b.keytab", None),
        ),
        ('useKeyTab=TRUE keyTab="file:/a" principal=a', KerberosLogin("a", "FILE:/a", None)),
        ('useKeyTab=true keyTab="relative.keytab" principal=a', KerberosLogin("a", "FILE:relative.keytab", None)),
        ("useKeyTab=true principal=a", KerberosLogin("a", "", None)),
        ("useTicketCache=true", KerberosLogin("", None, "")),
        ('useTicketCache=true ticketCache="/tmp/krb5cc_0"', KerberosLogin("", None, "FILE:/tmp/krb5cc_0")),
        ('useTicketCache=true ticketCache="KEYRING:session:x"', KerberosLogin("", None, "KEYRING:session:x")),
        (
            'useTicketCache=true useKeyTab=true keyTab="/a" principal=a',
            KerberosLogin("a", "FILE:/a", ""),
        ),
        ('useKeyTab=false keyTab="/a" useTicketCache=true principal=a', KerberosLogin("a", None, "")),
    ],
)
def test_options_as_java_has_them(options: str, expected: KerberosLogin) -> None:
    assert login(options) == expected


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("", "needs useKeyTab=true"),
        ('keyTab="/a" principal=a', "needs useKeyTab=true"),
        ('useKeyTab=true keyTab="/a"', "needs principal="),
        ('useKeyTab=true keyTab="/a" principal="*"', "needs principal="),
    ],
)
def test_what_is_missing_is_named(options: str, part: str) -> None:
    with pytest.raises(InvalidSetting, match=part):
        login(options)


def test_the_service_is_named_once_or_twice_alike() -> None:
    named = parse_jaas(f"{MODULE} required useTicketCache=true serviceName=kafka;")
    unnamed = parse_jaas(f"{MODULE} required useTicketCache=true;")
    assert service_name({}, named) == "kafka"
    assert service_name({"sasl.kerberos.service.name": "kafka"}, named) == "kafka"
    assert service_name({"sasl.kerberos.service.name": "broker"}, unnamed) == "broker"
    with pytest.raises(InvalidSetting, match="Conflicting serviceName"):
        service_name({"sasl.kerberos.service.name": "broker"}, named)
    with pytest.raises(InvalidSetting, match=r"set sasl\.kerberos\.service\.name"):
        service_name({}, unnamed)
