"""The checks, one a file: a snapshot's DataFrames in, findings out."""
