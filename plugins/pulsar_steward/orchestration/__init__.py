"""The Airflow shell: connections, operators, tasks. The only part of the library that knows Airflow.

Importing it fails, with the reason, in an Airflow that lacks what it needs: a DAG's import error is where that is read.
"""

from pulsar_steward.installed_airflow import require_supported_airflow

require_supported_airflow()
