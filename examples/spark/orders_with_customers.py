"""A stream of orders joined to a table of customers in PostgreSQL, over JDBC.

The topic `orders` has customer numbers, and the table `customers` has their names, countries and tiers. A streaming
query joins the two and writes complete orders to the topic `orders-with-customers`. Spark reads the table again for
every micro-batch: customers who sign up while the query runs are found by the next one. An order of an unknown customer
is kept, without a name.

Without --jdbc-url a PostgreSQL server is started for the example and removed afterwards (Debian: `apt-get install
postgresql`). The driver comes from Maven Central, through Spark, and is kept in Ivy's cache.
"""

import contextlib
import os
import random
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from examples.spark.postgresql import DRIVER, Database, PostgresqlMissing, postgresql
from examples.spark.shop import ORDER, Orders, Traffic, create_topic
from examples.spark.stage import Stage, parser, say, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

CUSTOMER = "id INT, name STRING, country STRING, tier STRING"
WHOLE_ORDER = f"{ORDER}, name STRING, country STRING, tier STRING"
TABLE = "customers"
FIRST_CUSTOMERS = 100
NEWCOMERS = 5
STRANGER = 0  # a customer who is not in the table

_FIRST = ("Ada", "Ben", "Chloé", "Dirk", "Elif", "Finn", "Greta", "Hugo", "Ines", "Jonas")
_LAST = ("Amsel", "Baum", "Costa", "Dietz", "Engel", "Fuchs", "Gruber", "Haas", "Ivanov", "Jung")


@dataclass
class People:
    """The customers so far: in the table, and available to the generator of orders."""

    stage: Stage
    database: Database
    rng: random.Random
    numbers: list[int]

    def sign_up(self, count: int) -> None:
        """In the table first: an order must not come before its customer."""
        first = max(self.numbers) + 1
        rows = [self._customer(number) for number in range(first, first + count)]
        table = self.stage.spark.createDataFrame(rows, CUSTOMER)
        table.coalesce(1).write.format("jdbc").options(**self.database.options, dbtable=TABLE).mode("append").save()
        self.numbers.extend(range(first, first + count))

    def _customer(self, number: int) -> tuple[Any, ...]:
        name = f"{self.rng.choice(_FIRST)} {self.rng.choice(_LAST)}"
        return (
            number,
            name,
            self.rng.choice(("DE", "FR", "NL", "PT")),
            self.rng.choice(("gold", "silver", "blue")),
        )


def run(stage: Stage, database: Database, *, orders: str, whole: str) -> bool:
    """Whether every order came out with the right customer."""
    stage.spark.sql(f"ADD JAR ivy://{DRIVER}?transitive=false")
    create_topic(stage.bootstrap, orders)
    create_topic(stage.bootstrap, whole)
    people = People(stage, database, random.Random(stage.seed), [STRANGER])
    people.sign_up(FIRST_CUSTOMERS)
    traffic = Traffic(stage.bootstrap, orders, Orders(random.Random(stage.seed), people.numbers), stage.rate)
    traffic.send_some()
    query = _start(stage, database, orders, whole)
    try:
        stage.warm_up(query)
        with traffic:
            for _ in range(2):
                stage.watch(
                    query, lambda running: f"{traffic.sent:,} orders sent, {_batch(running)}", stage.seconds / 2
                )
                people.sign_up(NEWCOMERS)
                say(f"         {NEWCOMERS} customers have signed up: there are {len(people.numbers) - 1} now")
        query.processAllAvailable()
    finally:
        query.stop()
    return _right(stage, database, orders, whole)


def _start(stage: Stage, database: Database, orders: str, whole: str) -> "StreamingQuery":
    from pyspark.sql import functions as f

    stream = stage.reader(orders, ORDER, streaming=True).select("value.*")
    return (
        _joined(stream, _customers(stage, database))
        .select(f.col("id").alias("key"), f.to_json(f.struct("*")).alias("value"))
        .writeStream.format("kaspar")
        .option("kafka.bootstrap.servers", stage.bootstrap)
        .option("topic", whole)
        .option("checkpointLocation", str(stage.folder / "checkpoint"))
        .trigger(processingTime="1 second")
        .start()
    )


def _customers(stage: Stage, database: Database) -> "DataFrame":
    return stage.spark.read.format("jdbc").options(**database.options, dbtable=TABLE).load()


def _joined(orders: "DataFrame", customers: "DataFrame") -> "DataFrame":
    found = orders.join(customers.withColumnRenamed("id", "customer"), "customer", "left")
    return found.select("id", "at", "customer", "items", "amount", "name", "country", "tier")


def _batch(query: "StreamingQuery") -> str:
    progress = query.lastProgress
    return "none joined yet" if progress is None else f"{progress['numInputRows']} joined in the last batch"


def _right(stage: Stage, database: Database, orders: str, whole: str) -> bool:
    """The same join over all orders at once must give the same."""
    came_out = stage.reader(whole, WHOLE_ORDER).select("value.*").cache()
    meant = _joined(stage.reader(orders, ORDER).select("value.*"), _customers(stage, database)).cache()
    missing, wrong = meant.exceptAll(came_out).count(), came_out.exceptAll(meant).count()
    if missing or wrong:
        print(f"{missing} orders are missing, and {wrong} are wrong or there twice.", file=sys.stderr)
        return False
    say("")
    for row in came_out.groupBy("tier").agg({"*": "count", "amount": "sum"}).orderBy("tier").collect():
        say(f"         {row['tier'] or 'unknown':8} {row['count(1)']:>7,} orders  {row['sum(amount)']:>14,}")
    say(f"All {came_out.count():,} orders have their customer.")
    return True


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument(
        "--jdbc-url",
        metavar="URL",
        help="jdbc:postgresql://HOST:PORT/NAME of a server that runs; its table `customers` is written to",
    )
    arguments.add_argument(
        "--jdbc-user", default="postgres", help="(default: postgres); the password is taken from PGPASSWORD"
    )
    given = arguments.parse_args()
    try:
        with contextlib.ExitStack() as open_here:
            if given.jdbc_url is None:
                database = open_here.enter_context(postgresql())
            else:
                database = Database(given.jdbc_url, given.jdbc_user, os.environ.get("PGPASSWORD", ""))
            ready = open_here.enter_context(stage("orders-with-customers", given))
            topics = {"orders": ready.topic("orders"), "whole": ready.topic("orders-with-customers")}
            return 0 if run(ready, database, **topics) else 1
    except PostgresqlMissing as missing:
        print(missing, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
