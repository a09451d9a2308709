"""A release from a table that Spark knows, on a cluster or on this machine.

    spark-submit --master yarn --packages ... examples/spark/release.py school.students students.yaml students.ledger
    spark-submit --master 'local[2]' examples/spark/release.py students.parquet students.yaml students.ledger

The workers add; the driver gets one row of sums and counts, draws the noise and writes the ledger, which must be on a disk that
stays, or in a PostgreSQL database. The driver needs attrpriv[spark]; the workers need nothing.
"""

from __future__ import annotations

import sys

import attrpriv as ap


def main(table: str, policy: str, ledger: str) -> None:
    if table.endswith(".parquet"):
        from pyspark.sql import SparkSession

        SparkSession.builder.getOrCreate().read.parquet(table).createOrReplaceTempView("release_of")
        table = "release_of"
    # The policy declares `rows`: to count them would be a query of its own.
    with ap.Session(f"spark:{table}", policy, ledger=ledger) as session:
        for answer in session.release().answers:
            for value in answer.values:
                print(answer.query, value.value)


if __name__ == "__main__":
    main(*sys.argv[1:])
