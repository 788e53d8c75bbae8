"""`--add-scram`: the forms that Kafka's command takes, and its sentences."""

import base64

import pytest

from kaspar.base.errors import KasparError
from kaspar.security.scram import SCRAM_SHA_256, SCRAM_SHA_512, credential_of, salted_password
from kaspar.tools.scram_arguments import parse_scram_arguments


def test_a_password_is_salted() -> None:
    (user,) = parse_scram_arguments(['SCRAM-SHA-256=[name="alice",password=alice-secret,iterations=8192]'])
    made = user.credential
    salted = salted_password(SCRAM_SHA_256, "alice-secret", made.salt, 8192)
    assert (user.name, user.mechanism) == ("alice", SCRAM_SHA_256)
    assert made == credential_of(SCRAM_SHA_256, salted, made.salt, 8192)


def test_a_password_may_be_salted_already() -> None:
    salt, salted = base64.b64encode(b"salt").decode(), base64.b64encode(b"salted").decode()
    (user,) = parse_scram_arguments([f'SCRAM-SHA-512=[name=bob,salt="{salt}",saltedpassword="{salted}"]'])
    assert user.credential == credential_of(SCRAM_SHA_512, b"salted", b"salt", 4096)


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("SCRAM-SHA-256", "Failed to find equals sign in SCRAM argument"),
        ("SCRAM-SHA-1=[name=a,password=p]", "The add-scram mechanism SCRAM-SHA-1 is not supported."),
        ("SCRAM-SHA-256=name=a,password=p", "Expected configuration string to start with ["),
        ("SCRAM-SHA-256=[name=a,password=p", "Expected configuration string to end with ]"),
        ("SCRAM-SHA-256=[password=p]", "You must supply 'name' to add-scram"),
        ("SCRAM-SHA-256=[name=a]", "You must supply one of 'password' or 'saltedpassword' to add-scram"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=cA==]", "You must supply 'salt' with 'saltedpassword' to add-scram"),
        (
            "SCRAM-SHA-256=[name=a,password=p,iterations=4095]",
            "The 'iterations' value must be >= 4096 for add-scram using SCRAM-SHA-256",
        ),
        (
            "SCRAM-SHA-512=[name=a,password=p,iterations=16385]",
            "The 'iterations' value must be <= 16384 for add-scram using SCRAM-SHA-512",
        ),
        ("SCRAM-SHA-256=[name=a,password=p,iterations=x]", "Failed to parse iterations count: x"),
        ("SCRAM-SHA-256=[name=a,password=p,color=red]", "Unknown SCRAM configurations: color"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,salt=!]", "Failed to decode given salt"),
        ("SCRAM-SHA-256=[name=a,hunter2]", "No equals sign found in SCRAM component"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(argument: str, sentence: str) -> None:
    with pytest.raises(KasparError) as refused:
        parse_scram_arguments([argument])
    assert str(refused.value) == sentence
