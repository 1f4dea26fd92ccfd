"""The checks, one per file: each has queries in SQL and a function that converts their rows to findings."""
