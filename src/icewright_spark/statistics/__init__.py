"""What Parquet files state of their rows, compared with the rows: readers skip by it, and no proof of rows sees it."""
