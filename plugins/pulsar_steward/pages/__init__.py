"""The third shell: Steward's pages and their JSON API, an application mounted in Airflow's API server.

It only reads: the ledger, by an engine whose database refuses changes, and small tables of snapshots. It does not know
Airflow. `steward_plugin.py`, which does, passes it the ledger, the snapshots and the access check.

Whatever reads the ledger raises `LedgerError` if that cannot be read; whatever reads a snapshot raises `SnapshotError`.
"""
