"""The storages themselves: local file systems, S3 and HDFS."""
