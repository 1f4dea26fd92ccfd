"""``steward airflow``: installs Steward's DAGs and Spark jobs in an Airflow, as files or as a DAG bundle."""

import json
from pathlib import Path
from typing import Annotated

import typer

from pulsar_steward.cli.dag_files import FOLDER, Done, install_files
from pulsar_steward.cli.errors import help_without_command
from pulsar_steward.cli.output import tell, tell_done
from pulsar_steward.model.units import counted
from pulsar_steward.report.checkup.compose import steward_version
from pulsar_steward.runtime.installed_airflow import require_supported_airflow
from pulsar_steward.runtime.installed_files import project_files

app = typer.Typer(add_completion=False, rich_markup_mode=None)

LEFT_AS_CHANGED = 1

VARIABLE = "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"
LOCAL_BUNDLE = "airflow.dag_processing.bundles.local.LocalDagBundle"

DagsFolder = Annotated[Path, typer.Argument(metavar="DAGS_FOLDER", help="Airflow's folder of DAGs.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replaces files that somebody changed, and keeps them beside the new ones.")
]


@app.callback(invoke_without_command=True)
def _options(context: typer.Context) -> None:
    """Brings Steward's DAGs and Spark jobs to an Airflow: as files, or as a DAG bundle.

    Refused where the Airflow of this environment lacks what the DAGs need; one elsewhere says so when it reads them.
    """
    help_without_command(context)
    require_supported_airflow()


@app.command()
def install(dags_folder: DagsFolder, *, overwrite: Overwrite = False) -> None:
    """Writes the DAGs and jobs of this version; may be repeated. Exit code: 0 all are, 1 a changed file was left."""
    version = steward_version()
    done = install_files(dags_folder, version, overwrite=overwrite)
    tell_done(
        f"pulsar-steward {version}: {counted(len(done), 'file')} in {dags_folder / FOLDER}",
        (f"- {path}: {what}" for path, what in sorted(done.items())),
    )
    if Done.LEFT in done.values():
        tell(
            "Not all files are this version's: compare those that were left, or replace them by --overwrite.", err=True
        )
        raise typer.Exit(LEFT_AS_CHANGED)
    if set(done.values()) - {Done.UNCHANGED}:
        tell("Airflow looks for new DAG files every `[dag_processor] refresh_interval` seconds, 300 by default.")


@app.command()
def bundle() -> None:
    """Prints Airflow's setting that reads the DAGs out of the installed package: nothing has to be copied.

    The bundle of Airflow's own folder of DAGs is in it. Where that setting has others already, add the last one there.
    """
    stanza = [
        {"name": "dags-folder", "classpath": LOCAL_BUNDLE, "kwargs": {}},
        {"name": FOLDER, "classpath": LOCAL_BUNDLE, "kwargs": {"path": str(project_files() / "dags")}},
    ]
    tell(f"{VARIABLE}={json.dumps(stanza)}")
