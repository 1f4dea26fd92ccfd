"""Where Steward runs: the installed Airflow and Spark, and threads."""
