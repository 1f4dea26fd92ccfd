"""The checks, by subject: each has queries in SQL, and turns their rows into findings."""
