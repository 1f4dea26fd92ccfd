"""Steward's home folder, and its protection from other users."""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

from pulsar_steward.errors import ConfigurationError

log = logging.getLogger(__name__)

SECRETS_FOLDERS = "STEWARD_SECRETS_FOLDERS"

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OWNERS_FOLDER = stat.S_IRWXU
_OWNERS_FILE = stat.S_IRUSR | stat.S_IWUSR


def steward_home() -> Path:
    """Home folder: ``STEWARD_HOME``, or ``steward`` in Airflow's; holds snapshots, policies, the default ledger."""
    chosen = os.environ.get("STEWARD_HOME")
    return Path(chosen) if chosen else Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser() / "steward"


def secrets_folders() -> tuple[Path, ...]:
    """Folders in which a connection may name credential files: ``STEWARD_SECRETS_FOLDERS``, separated by ``:``.

    The default folders hold only credentials for Pulsar. Other files in ``/run/secrets``, such as keys of Airflow or of
    Kubernetes, must not be sent anywhere by a connection.
    """
    chosen = os.environ.get(SECRETS_FOLDERS, "")
    named = tuple(Path(each) for each in chosen.split(os.pathsep) if each.strip())
    return named or (Path("/run/secrets/pulsar"), Path("/var/run/secrets/pulsar"), steward_home() / "secrets")


def in_secrets_folders(file: str) -> bool:
    """True if a file is in one of `secrets_folders`, and no symbolic link leads out of them.

    Links within them may change at any time: Kubernetes replaces an old secret that way.
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
        os.fchmod(made, _OWNERS_FILE)  # the umask may have taken rights from the owner too
    finally:
        os.close(made)


def keep_private(path: Path) -> None:
    """Restricts an existing file or folder to its owner.

    Another user's file is left as it is, as that user decides who may read it; a warning is logged, once.

    Raises:
        OSError: If it does not exist, or may not be read.
        ConfigurationError: If everybody may write to it, and this user cannot change that, or must not, as the folder
            is shared. Write access to the ledger or to a policy controls changes of a cluster.
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
