"""The demo: a cluster that is broken on purpose, and Airflow healing it under a person's eyes."""
