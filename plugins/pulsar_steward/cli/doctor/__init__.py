"""``steward doctor``: checks the requirements for reading a cluster, and for changing one."""
