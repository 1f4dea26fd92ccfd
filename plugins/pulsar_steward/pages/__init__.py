"""The third shell: Steward's pages and their JSON API, an application that Airflow's API server mounts.

It only reads: the ledger by an engine whose database refuses changes, and small tables of snapshots. It does not know
Airflow either: `steward_plugin.py`, which does, hands it the ledger, the snapshots and the check of who may look.
"""
