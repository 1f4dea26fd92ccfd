"""Steward's home folder, with the clusters' policy files, and its protection from other users."""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.cluster import require_cluster_name

log = logging.getLogger(__name__)

SECRETS_FOLDERS = "STEWARD_SECRETS_FOLDERS"

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OWNERS_FOLDER = stat.S_IRWXU
_OWNERS_FILE = stat.S_IRUSR | stat.S_IWUSR


def steward_home() -> Path:
    """Home folder: ``STEWARD_HOME``, or ``steward`` in Airflow's; holds snapshots, policies, the default ledger."""
    chosen = os.environ.get("STEWARD_HOME")
    return Path(chosen) if chosen else Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser() / "steward"


def policy_file(cluster: str) -> Path:
    """Policy file of a cluster: its own, or else the one for all clusters; it need not exist.

    Raises:
        ConfigurationError: If the name is no valid cluster name, or this user may not read `steward_home`.
    """
    own = steward_home() / "policies" / f"{require_cluster_name(cluster)}.yaml"
    shared = steward_home() / "policy.yaml"
    try:
        return shared if shared.exists() and not own.exists() else own
    except PermissionError as error:
        raise ConfigurationError(
            f"{error.filename} may not be looked at: policies in STEWARD_HOME are for the user that runs Airflow alone"
        ) from error


def secrets_folders() -> tuple[Path, ...]:
    """Folders that a connection may name files with credentials in: ``STEWARD_SECRETS_FOLDERS``, divided by ``:``.

    By default folders that hold nothing but credentials for Pulsar. What else is in ``/run/secrets``, such as the keys
    of Airflow or of Kubernetes, is nothing that a connection may have sent somewhere.
    """
    chosen = os.environ.get(SECRETS_FOLDERS, "")
    named = tuple(Path(each) for each in chosen.split(os.pathsep) if each.strip())
    return named or (Path("/run/secrets/pulsar"), Path("/var/run/secrets/pulsar"), steward_home() / "secrets")


def in_secrets_folders(file: str) -> bool:
    """True if a file is in one of `secrets_folders`, and no symbolic link leads out of them.

    Links within them may change at any time, as where Kubernetes puts a new secret in place of an old one.
    """
    real = Path(os.path.realpath(file))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in secrets_folders())


def private_folder(folder: Path) -> Path:
    """Creates a folder that only its owner can access, whatever the umask, or restricts an existing one; returns it.

    Raises:
        ConfigurationError: If it cannot be created, or everybody may write to it and this user cannot change that.
    """
    try:
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            with suppress(FileExistsError):  # another task was quicker
                each.mkdir(_OWNERS_FOLDER)
                each.chmod(_OWNERS_FOLDER)  # a umask may have taken rights from the owner too
        if not folder.is_dir():
            raise ConfigurationError(f"{folder} is no folder: name another one")
        keep_private(folder)
    except OSError as error:
        raise ConfigurationError(f"the folder {folder} cannot be made or looked at: {error.strerror}") from error
    return folder


def private_file(file: Path) -> None:
    """Creates an empty file that only its owner can access, whatever the umask, or restricts an existing one.

    Raises:
        OSError: If it can be neither created nor read.
        ConfigurationError: If everybody may write to it and this user cannot change that.
    """
    try:
        made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNERS_FILE)
    except FileExistsError:
        keep_private(file)
        return
    try:
        os.fchmod(made, _OWNERS_FILE)  # as above
    finally:
        os.close(made)


def keep_private(path: Path) -> None:
    """Restricts an existing file or folder to its owner.

    What another user owns is left as it is, as that user decides who may read there; this is logged as a warning, once.

    Raises:
        OSError: If it does not exist, or may not be read.
        ConfigurationError: If everybody may write there, and this user cannot change that, or must not, as it is a
            folder that everybody shares: who can write to the ledger or a policy controls changes of a cluster.
    """
    found = path.stat()
    mode, shared = stat.S_IMODE(found.st_mode), bool(found.st_mode & stat.S_ISVTX)
    whose = f"{stat.filemode(found.st_mode)}, user {found.st_uid}"
    if not mode & _OTHERS:
        return
    if found.st_uid == os.geteuid() and not shared:
        with suppress(OSError):  # a read-only file system
            path.chmod(mode & stat.S_IRWXU)
            log.warning("%s was open to others (%s): it is its owner's alone now", path, whose)
            return
    if mode & stat.S_IWOTH:
        remedy = "a folder of Steward's own" if shared else "another one, or have its owner change that (chmod go-rwx)"
        raise ConfigurationError(
            f"everybody may write to {path} ({whose}), and so say what may be done to a cluster: name {remedy}"
        )
    _warn_once(path, whose)


@cache
def _warn_once(path: Path, whose: str) -> None:
    log.warning("%s is open to others (%s), and not ours to close: have its owner do it (chmod go-rwx)", path, whose)
