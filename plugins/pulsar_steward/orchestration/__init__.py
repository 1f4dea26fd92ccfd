"""The Airflow shell: connections, operators, tasks. The only part of the library that knows Airflow.

Its import fails, with the reason, if a part of Airflow is missing. Airflow shows that as an import error of the DAG.
"""

from pulsar_steward.runtime.installed_airflow import require_supported_airflow

require_supported_airflow()
