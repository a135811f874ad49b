"""The merge kernel: many Parquet files in, one out, in order, with a proof.

Runs in Spark's Python workers and knows nothing of Spark.
"""

from icewright_spark.merge.merge import MergeJob, MergeResult, merge_group
from icewright_spark.merge.output import OutputFile

__all__ = ["MergeJob", "MergeResult", "OutputFile", "merge_group"]
