"""``steward doctor``: checks the requirements for reading a cluster, and for changing one.

Where a policy file or a ledger may be named, None stands for those of ``STEWARD_HOME``.
"""
