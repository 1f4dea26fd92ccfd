"""The checks, those of one subject in a file: each has queries in SQL, and says what their rows mean as findings."""
