"""Guards: one a file, each may veto a step, with its reason in words.

The same guards look twice: at planning, on the snapshot, and right before the call, on the live cluster.
"""
