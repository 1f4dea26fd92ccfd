"""What finds trouble in a snapshot: a check a file, which is questions in SQL and a function from rows to findings."""
