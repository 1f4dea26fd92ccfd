# One image for Airflow's parts and for Spark, on Airflow's own: a job's Python and the executors' are the same.
FROM apache/airflow:slim-3.3.2-python3.11 AS locked

USER root
# The first three are the mount points of named volumes: a volume takes its owner from the folder that it first covers.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --mode=0700 --owner=airflow --group=0 /var/lib/airflow /var/lib/snapshots /var/lib/steward \
    && install --directory --owner=airflow --group=0 /opt/steward /opt/steward/dags
USER airflow

# --no-deps, as the lock is complete; what the Spark provider asks for beyond it would overwrite PySpark's own files.
COPY --chown=airflow:0 requirements.lock /opt/steward/requirements.lock
RUN pip install --no-cache-dir --require-hashes --no-deps --requirement /opt/steward/requirements.lock

FROM locked AS build
COPY --chown=airflow:0 . /opt/steward/source
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /opt/steward/wheel /opt/steward/source

FROM locked
COPY --from=build --chown=airflow:0 /opt/steward/wheel /opt/steward/wheel
RUN pip install --no-cache-dir --no-deps /opt/steward/wheel/*.whl \
    && steward airflow install /opt/steward/dags
