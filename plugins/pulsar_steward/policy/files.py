"""Policy files in Steward's home: the file in force for a cluster, and files that are never used.

Names are compared with the folder's listing, letter by letter. The existence of a file is no proof: some file systems
accept `EAST.yaml` for `east.yaml`.
"""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pulsar_steward.errors import ConfigurationError, PolicyError
from pulsar_steward.model.cluster import CLUSTER_NAME, require_cluster_name
from pulsar_steward.policy.load import load_policy

if TYPE_CHECKING:
    from pulsar_steward.policy.schema import Policy

FOLDER = "policies"
SHARED = "policy.yaml"
ENDING = ".yaml"

_LIKE_IT = (ENDING, ".yml")


def policy_file(cluster: str) -> Path | None:
    """Policy file of a cluster: its own, or else the file for all clusters; None: there is neither.

    Raises:
        ConfigurationError: If the name is no valid cluster name, or this user may not read `steward_home`.
        PolicyError: If there is something that was meant as this file, but is never used: its name is spelt
            differently, or it is not a file.
    """
    own = f"{require_cluster_name(cluster)}{ENDING}"
    whose = f"cluster {cluster!r}"
    for folder, name in ((_folder(), own), (steward_home(), SHARED)):
        like_it = [each for each in _names_in(folder) if _meant(each) == _meant(name)]
        for each in like_it:
            _require_used(folder / each, name, whose)
        if like_it:
            return folder / name
    return None


def own_policy(cluster: str) -> Policy | None:
    """Policy in force for a cluster, if it has a file of its own or values of its own in the shared one; else None.

    Raises:
        ConfigurationError: As of `policy_file`.
        PolicyError: As of `policy_file`, or if the file does not hold up.
    """
    file = policy_file(cluster)
    if file is None:
        return None
    whole = load_policy(file)
    shared = file.parent == steward_home()
    policy = whole.for_cluster(cluster)
    return None if shared and cluster not in whole.clusters else policy


def own_policy_files() -> dict[str, Path]:
    """The file of each cluster with one of its own; errors as of `policy_file`."""
    return {file.stem: file for file in _in_folder() if _is_policy(file)}


def policy_files() -> list[Path]:
    """All files that are the policy of some cluster, the one for all clusters last; errors as of `policy_file`."""
    shared = steward_home() / SHARED
    there = SHARED in _names_in(steward_home()) and _is_file(shared)
    return [*own_policy_files().values(), *([shared] if there else [])]


def unused_files() -> tuple[str, ...]:
    """Files in the place of policies that are none, one sentence each; hidden files are ignored.

    Raises:
        ConfigurationError: If this user may not read the folder.
    """
    try:
        inside = [_why_unused(file) for file in _in_folder() if not _is_policy(file)]
        inside += [f"{' and '.join(each)} differ only in upper and lower case: none is used" for each in _twins()]
    except PolicyError as error:
        inside = [str(error)]
    home = steward_home()
    beside = [home / name for name in _names_in(home) if _meant(name) == _meant(SHARED)]
    return (*inside, *(_why_unused(file) for file in beside if file.name != SHARED or not _is_file(file)))


def _folder() -> Path:
    """The folder of the clusters' own files.

    Raises:
        PolicyError: If there is a folder with nearly this name.
    """
    home = steward_home()
    for each in _names_in(home):
        if each != FOLDER and each.casefold() == FOLDER:
            raise PolicyError(f"{home / each} is never read: the folder is called {FOLDER!r}; rename it")
    return home / FOLDER


def _in_folder() -> list[Path]:
    folder = _folder()
    return [folder / name for name in _names_in(folder) if not name.startswith(".")]


def _twins() -> list[list[str]]:
    """Files of clusters whose names differ only in upper and lower case."""
    found: dict[str, list[str]] = {}
    for cluster, file in own_policy_files().items():
        found.setdefault(cluster.casefold(), []).append(str(file))
    return [files for files in found.values() if len(files) > 1]


def _names_in(folder: Path) -> list[str]:
    """Names in a folder, in ascending order; empty if there is no such folder."""
    try:
        return sorted(each.name for each in folder.iterdir())
    except FileNotFoundError as error:
        if folder.is_symlink():
            raise PolicyError(f"{folder} is a link to nothing: have it lead to a folder, or take it away") from error
        return []
    except NotADirectoryError as error:
        raise PolicyError(f"{folder} is no folder: policies of single clusters belong into one of this name") from error
    except OSError as error:
        raise _shut(error) from error


def _require_used(file: Path, name: str, whose: str) -> None:
    """Checks that a file is the one that is used.

    Raises:
        PolicyError: If it is another one, or not a file.
    """
    if file.name != name:
        raise PolicyError(
            f"{file} is never used, and may be meant for {whose}, whose policy has to be called {name!r}, letter by"
            " letter: rename it, or take it away"
        )
    if not _is_file(file):
        raise PolicyError(f"{file} is {_what(file)}, and no policy of {whose}: put a file there, or take it away")


def _why_unused(file: Path) -> str:
    if not _is_file(file):
        return f"{file} is {_what(file)}, and never used as a policy"
    called = SHARED if file.parent == steward_home() else f"CLUSTER{ENDING}"
    return f"{file} is never used: a policy is called {called}, letter by letter"


def _is_policy(file: Path) -> bool:
    """True if a file in the folder is used for the cluster with its name."""
    named = file.suffix == ENDING and CLUSTER_NAME.fullmatch(file.stem)
    return bool(named) and _is_file(file)


def _meant(name: str) -> str:
    """The probably intended name: lower case, without the ending of a YAML file."""
    small = name.strip().casefold()
    return next((small.removesuffix(each) for each in _LIKE_IT if small.endswith(each)), small).strip()


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError as error:
        raise _shut(error) from error


def _what(file: Path) -> str:
    if file.is_dir():
        return "a folder"
    return "a link that leads to no file" if file.is_symlink() else "no file that can be read"


def _shut(error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"{error.filename} may not be looked at ({error.strerror}): policies in STEWARD_HOME are for the user that runs"
        " Airflow alone"
    )


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
