"""The Spark side of icewright: jobs that touch table data, and the resident optimizer that runs them."""
