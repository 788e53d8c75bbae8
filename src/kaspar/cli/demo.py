"""`kaspar demo`: runs everything of `kaspar up`, produces events, and runs two streams programs, with a live view."""

import click

from kaspar.cli.command import Command


@click.command("demo", cls=Command, epilog="Example: kaspar demo --seconds 30 --rate 5000")
@click.option(
    "--seconds",
    type=float,
    help="Stop this long after everything has started (default: run until Ctrl-C).",
)
@click.option("--rate", type=int, default=500, help="Events per second to produce (default: 500).")
@click.option("--without-spark", is_flag=True, help="Read the events with a consumer instead of Spark.")
@click.option("--open", "opens_console", is_flag=True, help="Open the console in a browser.")
def command(seconds: float | None, rate: int, without_spark: bool, opens_console: bool) -> int:
    """Run what 'kaspar up' runs, produce trades, clicks, orders and payments, and process them with two streams
    programs on Spark. The results are shown in this terminal and in the console, whose address is printed. All data is
    temporary. Needs kaspar[tools]; without kaspar[streams] or Java, a consumer reads the events."""
    from kaspar.demo.run import run_demo

    return run_demo(seconds=seconds, rate=rate, with_spark=not without_spark, opens_console=opens_console)
