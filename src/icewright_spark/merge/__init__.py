"""The merge kernel: many Parquet files in, one out, in order, with a proof.

Runs in Spark's Python workers and knows nothing of Spark.
"""
