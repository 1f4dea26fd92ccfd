"""Policy files in Steward's home: the file in force for a cluster, and files that are never used.

Names are compared with the folder's listing, letter by letter. The existence of a file is no proof: some file systems
accept `EAST.yaml` for `east.yaml`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.errors import ConfigurationError, PolicyError
from pulsar_steward.model.cluster import CLUSTER_NAME, require_cluster_name
from pulsar_steward.policy.load import load_policy
from pulsar_steward.policy.place import steward_home

if TYPE_CHECKING:
    from pathlib import Path

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
        alike: dict[str, list[str]] = {}
        for cluster, file in own_policy_files().items():
            alike.setdefault(cluster.casefold(), []).append(str(file))
        twins = [files for files in alike.values() if len(files) > 1]
        inside += [f"{' and '.join(each)} differ only in upper and lower case: none is used" for each in twins]
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
