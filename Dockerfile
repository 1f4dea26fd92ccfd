# One image for Airflow's parts and for Spark: a job's Python and the executors' are the same, modules included.
FROM python:3.11.13-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*

# --no-deps, as the lock is complete; what the Spark provider asks for beyond it would overwrite PySpark's own files.
COPY requirements.lock /opt/steward/requirements.lock
RUN pip install --no-cache-dir --require-hashes --no-deps --requirement /opt/steward/requirements.lock

# The mount points of named volumes: a volume takes its owner from the folder that it first covers.
RUN useradd --uid 10001 --create-home steward \
    && install --directory --mode=0700 --owner=steward --group=steward /var/lib/airflow /var/lib/snapshots /var/lib/steward

COPY plugins /opt/steward/plugins
COPY dags /opt/steward/dags
COPY spark_apps /opt/steward/spark_apps

# Spark's executors inherit this from their worker, and so find the same modules as the driver.
ENV PYTHONPATH=/opt/steward/plugins:/opt/steward/spark_apps
WORKDIR /opt/steward
USER steward
