"""The `steward` command line: shows a cluster's problems and possible remedies; can halt changes, makes none."""
