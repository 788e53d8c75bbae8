"""Short names of Kerberos principals: Kafka's own examples, and what its KerberosShortNamer makes of others."""

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.security.kerberos_names import NoShortName, ShortNames

APPS = (r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g", r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g", "DEFAULT")


def short_name(principal: str, *rules: str) -> str:
    return ShortNames(rules, "REALM.COM").name_of(principal)


@pytest.mark.parametrize(
    ("principal", "name"),
    [
        ("App.service-name/example.com@REALM.COM", "service-name"),
        ("App.service-name@REALM.COM", "service-name"),
        ("user/host@REALM.COM", "user"),
    ],
)
def test_the_examples_of_kafka(principal: str, name: str) -> None:
    assert short_name(principal, *APPS) == name


@pytest.mark.parametrize(
    ("principal", "rule", "name"),
    [
        ("User@REALM.COM", "RULE:[1:$1]/L", "user"),
        ("TestABC/host@FOO.COM", "RULE:[2:$1](.*)s/ABC/XYZ/g/L", "testxyz"),
        ("ABC_User_ABC/host@FOO.COM", "RULE:[2:$1](ABC.*)s/ABC/XYZ/g/L", "xyz_user_xyz"),
        ("App.SERVICE-name/example.com@REALM.COM", r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g/L", "service-name"),
        ("User/root@REALM.COM", "RULE:[2:$1]/L", "user"),
        ("User@REALM.COM", "RULE:[1:$1]/U", "USER"),
        ("TestABC/host@FOO.COM", "RULE:[2:$1](.*)s/ABC/XYZ/g/U", "TESTXYZ"),
        ("alice@OTHER.COM", r"RULE:[1:$1@$0](.*@OTHER\.COM)s/@.*//", "alice"),
        ("bob/admin@REALM.COM", "RULE:[2:$1;$2](^.*;admin$)s/;admin$//", "bob"),
        ("bob/root@REALM.COM", "RULE:[2:$2](root)", "root"),
        ("bob/root@REALM.COM", "RULE:[2:$1-$2-$0]", "bob-root-REALM.COM"),
        ("banana@REALM.COM", "RULE:[1:$1]s/a/o/", "bonana"),
        ("banana@REALM.COM", "RULE:[1:$1]s/a/o/g", "bonono"),
        ("banana@REALM.COM", "RULE:[1:$1]s/(?<first>.)(.*)/$2${first}/", "ananab"),
        ("banana@REALM.COM", "RULE:[1:$1]s/(.)/$12/", "b2anana"),
        ("banana@REALM.COM", r"RULE:[1:$1]s/(.)/\$1/", "$1anana"),
        ("alice@REALM.COM", "RULE:[1:$1]s/(x)?a/-$1-/", "--lice"),
    ],
)
def test_a_rule_gives_the_name_that_kafka_gives(principal: str, rule: str, name: str) -> None:
    assert short_name(principal, rule) == name


def test_the_first_rule_that_applies_decides() -> None:
    rules = ("RULE:[2:$1](nobody)", "RULE:[1:$1](al.*)s/.*/first/", "RULE:[1:$1](alice)s/.*/second/", "DEFAULT")
    assert short_name("alice@REALM.COM", *rules) == "first"
    assert short_name("bob@REALM.COM", *rules) == "bob"


@pytest.mark.parametrize(
    ("principal", "rules"),
    [
        ("alice@OTHER.COM", ("DEFAULT",)),
        ("alice@REALM.COM", ()),
        ("alice/host@REALM.COM", ("RULE:[1:$1]",)),
        ("alice@REALM.COM", ("RULE:[1:$1](ali)",)),
        ("alice@REALM.COM", ("RULE:[1:$1@$0]", "DEFAULT")),
        ("alice@REALM.COM", ("RULE:[1:$1]s/.*//", "DEFAULT")),
        ("a/b/c@REALM.COM", ("DEFAULT",)),
        (r"a\@b@REALM.COM", ("DEFAULT",)),
        ("alice", ("DEFAULT",)),
        ("@REALM.COM", ("DEFAULT",)),
    ],
)
def test_other_principals_have_no_name(principal: str, rules: tuple[str, ...]) -> None:
    with pytest.raises(NoShortName):
        short_name(principal, *rules)


@pytest.mark.parametrize(
    "rule",
    [
        "default",
        "DEFAULT/L",
        "RULE:[:$1]",
        "RULE:[1:$1]/X",
        "RULE:[1:$1]/LU",
        "RULE:[1:$2]",
        "RULE:[1:$]",
        "RULE:[1:$1](((a)",
        "RULE:[1:$1]s/(/x/",
        "RULE:[1:$1]s/(.)/$2/",
        "RULE:[1:$1]s/a/$/",
        "RULE:[1:$1]s/a/\\/",
        "RULE:[1:$1]s/a/${name}/",
        "RULE:[1:$1]s/a",
        "",
    ],
)
def test_a_rule_that_cannot_work_keeps_the_broker_from_starting(rule: str) -> None:
    with pytest.raises(InvalidSetting, match=r"sasl\.kerberos\.principal\.to\.local\.rules"):
        ShortNames([rule], "REALM.COM")
