"""The ten products of each category that sell best, by two phases.

    python examples/streams/top_ten.py --bootstrap-server localhost:9092 --generate

Reads `purchases`; writes to `top-ten` with the category as key. The first phase adds up what was sold of each product,
in many tasks at once; the second brings these sums together by category. So no task sees every purchase.
"""

import sys
from pathlib import Path
from typing import Any

from kaspar.streams import KafkaStreams, StreamsBuilder, Topology, serdes

Json = dict[str, Any]

TEN = 10


def add_purchase(product: str, purchase: Json, sold: Json) -> Json:
    return {"category": purchase["category"], "product": product, "sold": sold.get("sold", 0) + purchase["quantity"]}


def enter(category: str, product: Json, best: list[Json]) -> list[Json]:
    """The best with this product among them, if it sells well enough.

    Sums only grow. So a product that is not among the ten enters by its own next sale, and need not be remembered.
    """
    entered = [*best, {"product": product["product"], "sold": product["sold"]}]
    return sorted(entered, key=lambda entry: (-entry["sold"], entry["product"]))[:TEN]


def leave(category: str, product: Json, best: list[Json]) -> list[Json]:
    """The best without the former sum of this product."""
    return [entry for entry in best if entry["product"] != product["product"]]


def topology() -> Topology:
    builder = StreamsBuilder()
    json = serdes.json()
    purchases = builder.stream("purchases", value_serde=json)
    products = purchases.group_by(lambda order, purchase: purchase["product"]).aggregate(
        dict, add_purchase, "products", value_serde=json
    )
    best = products.group_by(lambda product, sold: (sold["category"], sold), value_serde=json).aggregate(
        list, enter, leave, "best-products", value_serde=json
    )
    best.to_stream().to("top-ten", value_serde=json)
    return builder.build()


def main() -> None:
    from examples.streams.command_line import generating, parse_arguments
    from examples.streams.generators import purchases

    arguments = parse_arguments(__doc__)
    settings = {
        "application.id": "top-ten",
        "bootstrap.servers": arguments.bootstrap_server,
        "processing.guarantee": "exactly_once_v2",
    }
    with generating(arguments, purchases, ["purchases"]):
        KafkaStreams(topology(), settings).run()


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2]))  # for the package examples
    main()
