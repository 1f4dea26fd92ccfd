"""A real Airflow on loopback: its own database, scheduler, DAG processor and API server, started and ended here."""
