"""Guards: one a file, each may veto a step, with its reason in words.

Every guard is asked twice: at planning about the snapshot, and right before the call about the live cluster.
"""
