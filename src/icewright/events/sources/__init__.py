"""Where events come from: Kafka, Hive notifications, metrics reports."""
