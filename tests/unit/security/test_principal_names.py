"""Names of principals from certificates: as Java writes subjects, and as Kafka's SslPrincipalMapper maps them."""

import base64

import pytest
from cryptography import x509

from kaspar.base.errors import InvalidSetting
from kaspar.security.principal_names import NoMatchingRule, PrincipalMapping, name_text

WRITTEN_BY_JAVA = [
    (
        "CN=alice,OU=eng,O=Acme\\, Inc,C=DE",
        "MD8xCzAJBgNVBAYTAkRFMRIwEAYDVQQKEwlBY21lLCBJbmMxDDAKBgNVBAsTA2VuZzEOMAwGA1UEAxMFYWxpY2U=",
    ),
    (
        'CN=a\\=b\\+c\\<d\\>e\\;f\\"g\\\\h\\#i,L=x,ST=y',
        "MDQxCjAIBgNVBAgTAXkxCjAIBgNVBAcTAXgxGjAYBgNVBAMMEWE9YitjPGQ+ZTtmImdcaCNp",
    ),
    ("CN=lead,O=\\#hash", "MB8xDjAMBgNVBAoMBSNoYXNoMQ0wCwYDVQQDEwRsZWFk"),
    (
        "1.2.840.113549.1.9.1=#16056140622e63,CN=x,DC=example,DC=com,UID=u,STREET=s,2.5.4.12=#13057469746c65,"
        "2.5.4.5=#13023132",
        "MIGMMQswCQYDVQQFEwIxMjEOMAwGA1UEDBMFdGl0bGUxCjAIBgNVBAkTAXMxETAPBgoJkiaJk/IsZAEBEwF1MRMwEQYKCZImiZPyLGQBGRYDY"
        "29tMRcwFQYKCZImiZPyLGQBGRYHZXhhbXBsZTEKMAgGA1UEAxMBeDEUMBIGCSqGSIb3DQEJARYFYUBiLmM=",
    ),
    ("CN=Zoë Ü,O=trail\\ ", "MCMxDzANBgNVBAoTBnRyYWlsIDEQMA4GA1UEAwwHWm/DqyDDnA=="),
    ("CN=a+OU=b,O=c", "MCIxCjAIBgNVBAoTAWMxFDAIBgNVBAMTAWEwCAYDVQQLEwFi"),
    ("2.5.4.42=#130167,2.5.4.4=#130173,CN=c", "MCQxCjAIBgNVBAMTAWMxCjAIBgNVBAQTAXMxCjAIBgNVBCoTAWc="),
]
"""What X500Principal.getName() returns, and the encoded names."""

RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT"
)


@pytest.mark.parametrize(("text", "encoded"), WRITTEN_BY_JAVA)
def test_subjects_are_written_as_by_java(text: str, encoded: str) -> None:
    assert name_text(x509.Name.from_bytes(base64.b64decode(encoded))) == text


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "serviceuser"),
        ("CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "adminuser@admin"),
        ("OU=x,CN=Some.Body", "some.body"),
        ("O=none", "O=none"),
    ],
)
def test_the_first_rule_that_applies_decides(subject: str, name: str) -> None:
    assert PrincipalMapping(RULES).name_of(subject) == name


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("RULE:^CN=(.*?),.*$/$1$2/", "CN=a,O=b", "a$2"),
        ("RULE:^CN=(.*?),.*$/$12/", "CN=a,O=b", "a2"),
        ("RULE:^CN=(.*?),.*$/$1/U , DEFAULT", "CN=a,O=b", "A"),
        ("RULE:^cn=a\\/b$/x\\/y/", "cn=a/b", "x/y"),
    ],
)
def test_references_and_letters(rules: str, subject: str, name: str) -> None:
    assert PrincipalMapping(rules).name_of(subject) == name


def test_without_a_rule_that_applies_nobody_gets_in() -> None:
    with pytest.raises(NoMatchingRule):
        PrincipalMapping("RULE:^CN=x$/y/").name_of("CN=z")


@pytest.mark.parametrize("rules", ["RULE:^CN=(.*$/$1/", "EVERYBODY", "RULE:^a$"])
def test_invalid_rules_are_refused(rules: str) -> None:
    with pytest.raises(InvalidSetting):
        PrincipalMapping(rules)
