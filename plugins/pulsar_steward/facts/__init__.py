"""Facts about a cluster for guards, and the calculations behind them; guards do not know the source.

At planning, facts are from a snapshot (`planners.snapshot_facts`). Right before a call, they are from the brokers and
the ledger (`apply.live_cluster`).
"""
