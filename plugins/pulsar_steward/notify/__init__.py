"""Messages to people: events of the ledger and of snapshots in words, and when each is sent. No Airflow here."""
