"""Commands of findings reach the cluster that was looked at."""

from kaspar.monitor.doctor.access import Access


def test_commands_name_the_servers_unless_these_are_the_default() -> None:
    assert Access().kaspar("group", "list") == "kaspar group list"
    assert Access("kafka1:9092").kaspar("group", "list") == "kaspar group list -b kafka1:9092"
    assert Access().kafka("kafka-topics", "--list") == "kafka-topics --bootstrap-server localhost:9092 --list"


def test_options_of_the_call_are_repeated() -> None:
    access = Access("kafka1:9092", ("--profile", "prod"), "client.properties")
    assert access.kaspar("group", "list") == "kaspar group list --profile prod"
    assert access.kafka("kafka-topics", "--list") == (
        "kafka-topics --bootstrap-server kafka1:9092 --command-config client.properties --list"
    )


def test_names_that_a_shell_would_read_are_quoted() -> None:
    assert Access().kaspar("group", "delete", "it's; rm -rf /") == """kaspar group delete 'it'"'"'s; rm -rf /'"""


def test_a_broker_is_started_where_it_runs() -> None:
    assert Access(folder="/srv/my cluster").start_broker() == "kaspar up --dir '/srv/my cluster'"
    assert Access().start_broker() == "kafka-server-start server.properties"
