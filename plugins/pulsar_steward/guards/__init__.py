"""Guards, by their subject: each may veto a step, and gives its reason in words.

Every guard checks a step twice: on the snapshot at planning, and on the live cluster right before the call.
"""
