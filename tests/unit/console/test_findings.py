"""Findings are grouped by severity, and hidden from callers who may not see what they are about."""

from dataclasses import replace

from kaspar.console.findings import Visible, view_of
from kaspar.monitor.doctor.finding import Finding, Severity


def finding(severity: Severity, resource: str) -> Finding:
    return Finding("code", severity, "Title", "Detail.", resource, "kaspar topic describe orders")


FOUND = [
    finding(Severity.NOTE, "broker 1"),
    finding(Severity.PROBLEM, "topic orders"),
    finding(Severity.PROBLEM, "partition orders-3"),
    finding(Severity.WARNING, "group billing"),
    finding(Severity.WARNING, "cluster"),
]


def test_the_worst_come_first_and_every_severity_is_there() -> None:
    view = view_of(FOUND[:1], Visible(cluster=True), looked_at_ms=5)
    assert [(each.severity, len(each.findings)) for each in view.severities] == [
        ("problem", 0),
        ("warning", 0),
        ("note", 1),
    ]
    assert (view.total, view.looked_at_ms, view.hidden) == (1, 5, 0)


def test_a_caller_sees_findings_about_what_may_be_seen() -> None:
    assert view_of(FOUND, Visible(cluster=True), looked_at_ms=None).total == 5
    limited = view_of(FOUND, Visible(cluster=False, topics={"orders"}, groups={"other"}), looked_at_ms=None)
    shown = [each.resource for severity in limited.severities for each in severity.findings]
    assert shown == ["topic orders", "partition orders-3"]
    assert limited.hidden == 3


def test_a_finding_about_a_group_is_hidden_from_a_caller_who_may_not_see_the_topics_it_names() -> None:
    found = [replace(finding(Severity.WARNING, "group billing"), topics=("orders", "payroll"))]
    assert view_of(found, Visible(cluster=True), looked_at_ms=None).total == 1
    assert view_of(found, Visible(False, {"orders", "payroll"}, {"billing"}), looked_at_ms=None).total == 1
    hidden = view_of(found, Visible(False, {"orders"}, {"billing"}), looked_at_ms=None)
    assert (hidden.total, hidden.hidden) == (0, 1)
