"""What the charts show, read of a snapshot's tables: the worst few of each kind, whatever the cluster's size."""
