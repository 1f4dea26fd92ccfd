"""The Airflow shell: connections, operators, tasks. The only part of the library that knows Airflow."""
