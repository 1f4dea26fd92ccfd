"""The one module of this folder that Airflow loads (.airflowignore keeps it from the library's own files)."""

from airflow.plugins_manager import AirflowPlugin


class PulsarSteward(AirflowPlugin):
    """Names Pulsar Steward among Airflow's plugins."""

    name = "pulsar_steward"
