"""Data of the charts, read from a snapshot's tables: the worst few of each kind, whatever the cluster's size."""
