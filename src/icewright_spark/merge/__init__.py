"""The merge kernel: many Parquet files in, one out, in order, with a proof.

Runs in Spark's Python workers and knows nothing of Spark.
"""

from icewright_spark.merge.merge import MergeJob, MergeResult, OutputFile, merge_group
from icewright_spark.merge.settings import WriterSettings, writer_settings

__all__ = ["MergeJob", "MergeResult", "OutputFile", "WriterSettings", "merge_group", "writer_settings"]
