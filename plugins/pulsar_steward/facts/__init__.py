"""Facts: what guards may ask of a cluster, and the sums that make the answers; who answers, they do not know.

At planning a snapshot answers (`planners.snapshot_facts`), right before a call the brokers and the ledger
(`apply.live_facts`).
"""
