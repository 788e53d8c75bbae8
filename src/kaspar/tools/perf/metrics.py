"""Prints metrics of a client in the format of Kafka's commands."""

from collections.abc import Mapping


def print_metrics(metrics: Mapping[str, float], client_id: str, group: str = "producer-metrics") -> None:
    names = {name: f"{group}:{name}:{{client-id={client_id}}}" for name in sorted(metrics)}
    width = max(map(len, names.values()))
    print(f"\n{'Metric Name':<{width}}   Value")
    for name, shown in names.items():
        print(f"{shown:<{width}} : {metrics[name]:.3f}")
