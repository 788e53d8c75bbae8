#!/bin/sh
# The Python of Spark's workers on this machine: KASPAR_SPARK_PYTHON, which has PySpark installed.
#
# Spark puts its own pyspark.zip first on the path of every worker. Nothing in that archive is compiled, so each process
# compiles all that it imports, again and again: half a second of CPU, and a first query starts half a dozen of them.
# Without it they import the same PySpark from where it is installed.
set -f
IFS=:
path=
for entry in $PYTHONPATH; do
    case $entry in
        */python/lib/pyspark.zip | */python/lib/py4j-*-src.zip | */jars/spark-core_*.jar) ;;
        *) path=$path${path:+:}$entry ;;
    esac
done
PYTHONPATH=$path
export PYTHONPATH
# The processes that plan reads and commit writes come from Spark's own daemon, whatever spark.python.daemon.module says.
if [ "$1 $2" = "-m pyspark.daemon" ]; then
    shift 2
    set -- -m kaspar.spark.running.worker_daemon "$@"
fi
exec "${KASPAR_SPARK_PYTHON:?is set by kaspar.spark.session()}" "$@"
