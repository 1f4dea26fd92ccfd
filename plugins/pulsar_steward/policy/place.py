"""Where Steward keeps its things, the policies of clusters among them, and that nobody else gets at them."""

from __future__ import annotations

import logging
import os
import re
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

from pulsar_steward.errors import ConfigurationError

log = logging.getLogger(__name__)

CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Names of clusters become parts of paths, and can be nothing else there."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OWNERS_FOLDER = stat.S_IRWXU
_OWNERS_FILE = stat.S_IRUSR | stat.S_IWUSR


def steward_home() -> Path:
    """``STEWARD_HOME``, or ``steward`` in Airflow's own folder: snapshots, policies and the default ledger."""
    chosen = os.environ.get("STEWARD_HOME")
    return Path(chosen) if chosen else Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser() / "steward"


def policy_file(cluster: str) -> Path:
    """The file with the policy of a cluster: its own, or else the one for all clusters; it need not exist.

    Raises:
        ConfigurationError: If that is no cluster's name, or this user may not look into `steward_home`.
    """
    if not CLUSTER_NAME.fullmatch(cluster):
        raise ConfigurationError(f"cluster name {cluster!r}: use letters, digits, '.', '_' and '-' only")
    own = steward_home() / "policies" / f"{cluster}.yaml"
    shared = steward_home() / "policy.yaml"
    try:
        return shared if shared.exists() and not own.exists() else own
    except PermissionError as error:
        raise ConfigurationError(
            f"{error.filename} may not be looked at: policies in STEWARD_HOME are for the user that runs Airflow alone"
        ) from error


def private_folder(folder: Path) -> Path:
    """Makes a folder that is its owner's alone, whatever the umask, or has one that is there be so; returns it.

    Raises:
        ConfigurationError: If it cannot be made, or everybody may write to it and this user cannot change that.
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
    """Makes an empty file that is its owner's alone, whatever the umask, or has one that is there be so.

    Raises:
        OSError: If it can be neither made nor looked at.
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
    """Takes from everybody but its owner what they may do with a file or folder that is there.

    What another user owns is left as it is, as who may read there is their word; that is warned of, once.

    Raises:
        OSError: If there is none, or it may not be looked at.
        ConfigurationError: If everybody may write there, and this user cannot change that, or must not, as it is a
            folder that everybody shares: whoever writes to the ledger or a policy says what may be done to a cluster.
    """
    found = path.stat()
    mode, shared = stat.S_IMODE(found.st_mode), bool(found.st_mode & stat.S_ISVTX)
    whose = f"{stat.filemode(found.st_mode)}, user {found.st_uid}"
    if not mode & _OTHERS:
        return
    if found.st_uid == os.geteuid() and not shared:
        with suppress(OSError):  # a file system that is only read
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
