"""Facts about a cluster for guards, by one protocol for every source, and the calculations behind them.

At planning, facts are from a snapshot (`planners.snapshot_facts`). Right before a call, they are from the brokers and
the ledger (`apply.live_cluster`); `planning` tells which, for facts that only the live cluster has.
"""
