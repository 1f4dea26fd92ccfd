"""Messages to people: events of the ledger and of snapshots in words, and the times of sending. No Airflow here."""
