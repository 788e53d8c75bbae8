"""Small programs that read and write topics with Spark, each with data of its own. docs/spark/examples.md shows them.

python -m examples.spark.daily_folders --help
python -m examples.spark.click_counts --help
python -m examples.spark.orders_with_customers --help
"""
