"""Folders of snapshots, and where they are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsar_steward.errors import ConfigurationError, SnapshotError
from pulsar_steward.model.tables import BROKERS, CLIENTS, FINDINGS, METRICS, SUBSCRIPTIONS, TOPICS, VERDICTS, Table
from pulsar_steward.policy.schema import HousekeepingPolicy
from pulsar_steward.snapshots.database import schema_of
from pulsar_steward.snapshots.folder import STAGING, LocalFiles, SnapshotFolder, place_of, snapshot_uri, stamp_of
from pulsar_steward.snapshots.housekeeping import Kept, past_their_time, tidy, too_large_by_now
from pulsar_steward.snapshots.read import open_snapshot
from tests.cases import row_by_row
from tests.http_serving import serving

NOW = datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)


class Elsewhere(LocalFiles):
    """A file system that this machine does not have."""

    def local(self, place: str) -> Any:
        """Nowhere."""
        return None if place.startswith("far://") else super().local(place)

    def exists(self, place: str) -> bool:
        """Returns whether the local file or folder behind the address exists."""
        return super().exists(near(place))

    def names(self, place: str) -> list[str]:
        """Returns the names in the local folder behind the address."""
        return super().names(near(place))

    def read(self, place: str) -> bytes:
        """Returns the content of the local file behind the address."""
        return super().read(near(place))

    def write(self, place: str, content: bytes) -> None:
        """Writes the local file behind the address."""
        super().write(near(place), content)

    def delete(self, place: str) -> None:
        """Deletes the local file or folder behind the address."""
        super().delete(near(place))


def near(place: str) -> str:
    """Returns the local path behind a `far://` address."""
    return place.removeprefix("far:/")


def table(of: Table, *rows: dict[str, Any]) -> pa.Table:
    """A table of rows that may leave columns out."""
    return pa.Table.from_pylist(list(rows), schema=schema_of(of))


def a_folder(root: Path, minutes: int = 0, *, finished: bool = True, diagnosed: bool = True) -> SnapshotFolder:
    folder = SnapshotFolder(LocalFiles(), snapshot_uri(str(root), "lab", NOW + timedelta(minutes=minutes)))
    folder.begin()
    folder.write(BROKERS, table(BROKERS, {"broker": "a:1"}))
    if diagnosed:
        folder.write(FINDINGS, table(FINDINGS))
        folder.write(VERDICTS, table(VERDICTS))
    if finished:
        folder.finish()
    return folder


@row_by_row(
    "cluster, taken_at, words",
    ("../up", NOW, "cluster name"),
    ("", NOW, "cluster name"),
    ("lab", datetime(2026, 1, 1), "time zone"),  # noqa: DTZ001 - what is to be refused
)
def test_what_makes_no_path_is_refused(cluster: str, taken_at: datetime, words: str) -> None:
    """A cluster name that cannot be part of a path, and a time without a time zone, are refused."""
    with pytest.raises(ConfigurationError, match=words):
        snapshot_uri("out", cluster, taken_at)


def test_a_name_tells_the_time_in_utc() -> None:
    assert stamp_of(NOW.astimezone(timezone(timedelta(hours=3)))) == "20260131T235959Z"
    assert snapshot_uri("hdfs://x/out/", "lab", NOW) == "hdfs://x/out/cluster=lab/taken_at=20260131T235959Z"


def test_it_counts_from_its_end_on_until_it_is_begun_anew(tmp_path: Path) -> None:
    """A snapshot counts once it is finished, and one that is begun anew has to be diagnosed again."""
    folder = a_folder(tmp_path, finished=False)
    assert (folder.finished(), folder.diagnosed()) == (False, False)
    with pytest.raises(SnapshotError, match="holds no _SUCCESS: collect again"):
        folder.require_finished()
    folder.finish()
    folder.require_finished()
    assert (folder.finished(), folder.diagnosed()) == (True, True)
    folder.begin()
    folder.finish()
    assert (folder.finished(), folder.diagnosed()) == (True, False)


def test_of_earlier_snapshots_the_newest_whole_ones_count(tmp_path: Path) -> None:
    for minutes in range(6):
        a_folder(tmp_path, minutes, finished=minutes != 1, diagnosed=minutes != 2)
    Path(tmp_path, "cluster=lab", "notes").mkdir()
    here = a_folder(tmp_path, 5)

    assert [each.name for each in here.earlier(12)] == [a_folder(tmp_path, each).name for each in (4, 3, 0)]
    assert len(here.earlier(1)) == 1
    assert SnapshotFolder(LocalFiles(), snapshot_uri(str(tmp_path), "other", NOW)).earlier(12) == []


def test_all_of_a_cluster_have_their_times(tmp_path: Path) -> None:
    """`all_of_cluster` returns finished and unfinished snapshots with their times, and leaves out other folders."""
    a_folder(tmp_path, 0, finished=False)
    here = a_folder(tmp_path, 1)
    for name in ("notes", "taken_at=yesterday"):
        Path(tmp_path, "cluster=lab", name).mkdir()
    assert [taken_at for _, taken_at in here.all_of_cluster()] == [NOW, NOW + timedelta(minutes=1)]


def test_what_an_older_version_did_not_write_is_null(tmp_path: Path) -> None:
    """A missing column is null, a missing table is empty, and all Parquet files of a table are read."""
    folder = a_folder(tmp_path)
    place = Path(folder.uri, BROKERS.name)
    pq.write_table(pa.table({"broker": ["b:1"], "of_a_later_version": [1]}), place / "part-9.parquet")
    Path(place, "_notes.txt").write_text("no table")

    assert folder.read(BROKERS).select(["broker", "read"]).to_pylist() == [
        {"broker": "a:1", "read": None},
        {"broker": "b:1", "read": None},
    ]
    assert folder.read(CLIENTS) == schema_of(CLIENTS).empty_table()
    assert folder.source(BROKERS) == [str(place / name) for name in ("part-0.parquet", "part-9.parquet")]


def test_a_file_that_is_none_is_an_error(tmp_path: Path) -> None:
    """A file that is not Parquet is refused with an error that names it."""
    folder = a_folder(tmp_path)
    Path(folder.uri, BROKERS.name, "part-0.parquet").write_bytes(b"no such thing")
    with pytest.raises(SnapshotError, match=r"brokers/part-0\.parquet cannot be read"):
        folder.read(BROKERS)


def test_writing_replaces_and_adding_adds(tmp_path: Path) -> None:
    """Writing a table replaces its rows, with columns given in any order, and adding keeps the rows that it has."""
    folder = a_folder(tmp_path)
    rows = table(BROKERS, {"broker": "b:1"})
    folder.write(BROKERS, rows.select(list(reversed(rows.column_names))))
    assert pq.read_schema(Path(folder.uri, BROKERS.name, "part-0.parquet")).names == list(BROKERS.names)
    folder.add(BROKERS, table(BROKERS, {"broker": "c:1"}))
    assert sorted(folder.read(BROKERS)["broker"].to_pylist()) == ["b:1", "c:1"]


def test_files_of_one_name_make_a_shard(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    names = {
        TOPICS: ("part-00000-1f.c000.zstd.parquet", "part-00001-1f.c000.zstd.parquet", "part-ab12-x.parquet"),
        SUBSCRIPTIONS: ("part-00000-2e.c000.zstd.parquet", "part-ab12-x.parquet"),
        METRICS: ("part-00001-3d.c000.zstd.parquet", "part-ab12-y.parquet", "added.parquet", "_x.crc"),
    }
    for of, files in names.items():
        for name in files:
            LocalFiles().write(f"{folder.uri}/{of.name}/{name}", b"")

    shards = [{name: [Path(each).name for each in files] for name, files in shard.items()} for shard in folder.shards()]

    assert sorted(map(str, shards)) == sorted(
        map(
            str,
            [
                {"metrics": ["added.parquet"]},
                {"topics": [names[TOPICS][0]], "subscriptions": [names[SUBSCRIPTIONS][0]]},
                {"topics": [names[TOPICS][1]], "metrics": [names[METRICS][0]]},
                {"topics": ["part-ab12-x.parquet"], "subscriptions": ["part-ab12-x.parquet"]},
                {"metrics": ["part-ab12-y.parquet"]},
            ],
        )
    )
    assert SnapshotFolder(LocalFiles(), str(tmp_path / "none")).shards() == []


def test_staged_files_become_a_table(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    staging = folder.staging()
    assert staging == Path(folder.uri, STAGING)
    folder.write(TOPICS, table(TOPICS, {"topic": "old"}))
    (staging / TOPICS.name).mkdir(parents=True)
    pq.write_table(table(TOPICS, {"topic": "new"}), staging / TOPICS.name / "part-1.parquet")

    folder.take_in(TOPICS, ["part-1.parquet"])
    folder.take_in(CLIENTS, [])
    folder.end_staging()

    assert folder.read(TOPICS)["topic"].to_pylist() == ["new"]
    assert Path(folder.uri, CLIENTS.name).is_dir()
    assert not staging.exists()


def test_files_that_are_not_seen_here_are_an_error(tmp_path: Path) -> None:
    """A staged file that is not on this machine is an error that names the file and suggests a shared address."""
    folder = SnapshotFolder(LocalFiles(), str(tmp_path))
    with pytest.raises(SnapshotError, match=r"topics/part-1\.parquet, which a Spark task wrote, is not there.*hdfs"):
        folder.take_in(TOPICS, ["part-1.parquet"])


def test_what_lies_elsewhere_is_read_through_its_file_system(tmp_path: Path) -> None:
    """A snapshot on another file system gives tables as rows, shards as addresses, and no staging folder."""
    here = a_folder(tmp_path)
    here.write(TOPICS, table(TOPICS, {"topic": "t"}))
    folder = SnapshotFolder(Elsewhere(), f"far:/{here.uri}")

    assert folder.staging() is None
    assert folder.read(BROKERS) == folder.source(BROKERS) == here.read(BROKERS)
    assert folder.shards() == [{"topics": [f"far:/{here.uri}/topics/part-0.parquet"]}]


def test_what_is_removed_is_gone(tmp_path: Path) -> None:
    """Removing a snapshot deletes its folder, and removing it again is no error."""
    folder = a_folder(tmp_path)
    folder.remove()
    assert not Path(folder.uri).exists()
    folder.remove()


BUCKET = "bucket"


class Store(BaseHTTPRequestHandler):
    """Server for the part of S3's protocol that reading needs: listings of folders, and parts of files."""

    root: Path

    def do_HEAD(self) -> None:
        """A file's size."""
        self.do_GET()

    def do_GET(self) -> None:
        """A listing where one is asked for; else a file, or a part of it."""
        asked = urlsplit(self.path)
        query = parse_qs(asked.query)
        key = unquote(asked.path).removeprefix(f"/{BUCKET}").lstrip("/")
        file = self.root / key
        if "list-type" in query:
            self._answer(200, self._listing(query["prefix"][0], deep="delimiter" not in query).encode())
        elif file.is_file():
            self._part(file.read_bytes())
        else:
            self._answer(404, b"")

    def log_message(self, *_words: object) -> None:
        """Logs nothing."""

    def _listing(self, prefix: str, *, deep: bool) -> str:
        """Everything below a folder whose name is the prefix, or what is right in it."""
        folder = self.root / prefix
        found = sorted(folder.rglob("*") if deep else folder.iterdir()) if folder.is_dir() else []
        wanted = [each for each in found if each.is_file() or not deep]
        listed = "".join(
            f"<Contents><Key>{self._key(each)}</Key><Size>{each.stat().st_size}</Size></Contents>"
            if each.is_file()
            else f"<CommonPrefixes><Prefix>{self._key(each)}/</Prefix></CommonPrefixes>"
            for each in wanted
        )
        head = f"<KeyCount>{len(wanted)}</KeyCount><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult>{head}{listed}</ListBucketResult>"

    def _key(self, file: Path) -> str:
        return escape(file.relative_to(self.root).as_posix())

    def _part(self, content: bytes) -> None:
        wanted = self.headers.get("Range")
        if wanted is None:
            self._answer(200, content)
            return
        first, last = (int(each) for each in wanted.removeprefix("bytes=").split("-"))
        part = content[first : last + 1]
        place = f"bytes {first}-{first + len(part) - 1}/{len(content)}"
        self._answer(206, part, {"Content-Range": place})

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_snapshot_in_an_object_store(folder: Path, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    """A snapshot in an object store is read like one on a disk, by an `s3` and by an `s3a` address."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with serving(type("OfThisTest", (Store,), {"root": folder.parent})) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{address}")
        stored = open_snapshot(f"{scheme}://{BUCKET}/{folder.name}")
        here = open_snapshot(str(folder))
        assert stored.meta() == here.meta()
        assert stored.brokers() == here.brokers()
        assert stored.findings() == here.findings()


@pytest.mark.parametrize("uri", ["{path}", "{path}/", "file:{path}", "file://{path}/"])
def test_a_path_may_be_written_in_any_way(folder: Path, uri: str) -> None:
    """A snapshot can be opened by a path or a `file:` address, with or without a slash at its end."""
    assert open_snapshot(uri.format(path=folder)).meta() == open_snapshot(str(folder)).meta()


@row_by_row(
    "uri, words",
    ("wasb://c@account/x", "STEWARD_SNAPSHOTS may be a path"),
    ("dbfs:/x", "STEWARD_SNAPSHOTS may be a path"),
    ("hdfs://nowhere.invalid:1/x", "HADOOP_HOME"),
    ("viewfs://nowhere/x", "HADOOP_HOME"),
)
def test_what_cannot_be_opened_is_told_with_its_remedy(uri: str, words: str) -> None:
    """An address that cannot be opened is refused with an error that names it and the remedy."""
    with pytest.raises(SnapshotError, match=f"^{uri}: .*{words}"):
        place_of(uri)


def test_a_name_with_a_colon_is_a_path() -> None:
    assert place_of("some/10:30/folder")[1] == "some/10:30/folder"


HOUSEKEEPING_NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
POLICY = HousekeepingPolicy(keep_snapshots_days=10, keep_snapshots_least=2)


def ago(days: float) -> datetime:
    """Returns the time that many days before now."""
    return HOUSEKEEPING_NOW - timedelta(days=days)


@row_by_row(
    "finished, unfinished, gone",
    ([1, 2, 3], [], []),
    ([1, 2, 11, 12], [], [12, 11]),
    ([11, 12, 13], [], [13]),
    ([11, 12], [], []),
    ([1, 2, 9.9, 10.1], [], [10.1]),
    ([1, 2, 3], [0.9, 1.1, 30], [30, 1.1]),
    ([], [2], [2]),
)
def test_what_is_past_its_time_goes_oldest_first(
    finished: list[float], unfinished: list[float], gone: list[float]
) -> None:
    """Snapshots past their time go oldest first, except the newest finished ones; unfinished ones go after a day."""
    folder = SnapshotFolder(LocalFiles(), "file:///nowhere")
    there = [Kept(folder=folder, taken_at=ago(days), finished=True) for days in finished]
    there += [Kept(folder=folder, taken_at=ago(days), finished=False) for days in unfinished]
    assert [each.taken_at for each in past_their_time(there, POLICY, HOUSEKEEPING_NOW)] == [ago(days) for days in gone]


def made(root: Path, days: float, *, finished: bool = True) -> Path:
    """A snapshot of so many days ago, with a file in it."""
    place = SnapshotFolder(LocalFiles(), snapshot_uri(str(root), "east", ago(days)))
    folder = root / "cluster=east" / f"taken_at={stamp_of(ago(days))}"
    (folder / "topics").mkdir(parents=True)
    (folder / "topics" / "part-0.parquet").write_bytes(b"x")
    if finished:
        place.finish()
    return folder


def test_only_the_clusters_own_old_snapshots_are_removed(tmp_path: Path) -> None:
    old, young = made(tmp_path, 11), [made(tmp_path, days) for days in (1, 2)]
    left_behind = made(tmp_path, 3, finished=False)
    other = [tmp_path / "cluster=east" / "notes", tmp_path / "cluster=west" / old.name]
    for folder in other:
        folder.mkdir(parents=True)
    here = SnapshotFolder(LocalFiles(), snapshot_uri(str(tmp_path), "east", HOUSEKEEPING_NOW))
    tidied = tidy(here, POLICY, HOUSEKEEPING_NOW)
    assert [uri.rpartition("/")[2] for uri in tidied.removed] == [old.name, left_behind.name]
    assert tidied.left == len(young)
    assert not old.exists()
    assert not left_behind.exists()
    assert all(folder.exists() for folder in [*young, *other])


@row_by_row(
    "least, ages, compacted",
    (1, [1, 2, 4, 5], []),
    (1, [0.1 * number for number in range(12)] + [2, 4, 5], [5, 4]),
    (14, [0.1 * number for number in range(12)] + [2, 4, 5], [5]),
    (1, [4 + 0.1 * number for number in range(13)], [5.2]),
)
def test_what_a_diagnosis_looks_back_to_stays_whole(least: int, ages: list[float], compacted: list[float]) -> None:
    """The newest twelve snapshots, or more by the policy, stay whole; old ones before them are compacted."""
    policy = HousekeepingPolicy(keep_topics_days=3, keep_snapshots_least=least)
    folder = SnapshotFolder(LocalFiles(), "file:///nowhere")
    there = [Kept(folder=folder, taken_at=ago(days), finished=True) for days in ages]
    there.append(Kept(folder=folder, taken_at=ago(6), finished=True, compacted=True))
    there.append(Kept(folder=folder, taken_at=ago(6), finished=False))
    assert [each.taken_at for each in too_large_by_now(there, policy, HOUSEKEEPING_NOW)] == [
        ago(days) for days in compacted
    ]


def test_of_a_compacted_snapshot_what_was_said_of_it_stays(tmp_path: Path) -> None:
    """An old snapshot loses its large tables once and keeps its findings until its time ends; newer ones stay whole."""
    folders = [made(tmp_path, days) for days in (*(0.1 * number for number in range(12)), 5)]
    (folders[-1] / "findings").mkdir()
    here = SnapshotFolder(LocalFiles(), snapshot_uri(str(tmp_path), "east", HOUSEKEEPING_NOW))
    policy = HousekeepingPolicy(keep_topics_days=3, keep_snapshots_days=6)

    tidied = tidy(here, policy, HOUSEKEEPING_NOW)
    assert (folders[-1] / "findings").exists()
    assert not (folders[-1] / "topics").exists()
    again = tidy(here, policy, HOUSEKEEPING_NOW)
    later = tidy(here, policy, HOUSEKEEPING_NOW + timedelta(days=2))

    assert [uri.rpartition("/")[2] for uri in tidied.compacted] == [folders[-1].name]
    assert (tidied.removed, again.compacted, again.removed) == ((), (), ())
    assert [uri.rpartition("/")[2] for uri in later.removed] == [folders[-1].name]
    assert all((folder / "topics").exists() for folder in folders[:-1])


def test_a_compacted_snapshot_is_none(tmp_path: Path) -> None:
    """A compacted snapshot keeps its findings, counts as not finished and is refused."""
    folder = made(tmp_path, 5)
    (folder / "findings").mkdir()
    place = SnapshotFolder(LocalFiles(), str(folder))
    place.compact()

    assert not place.finished()
    assert sorted(each.name for each in folder.iterdir() if each.is_dir()) == ["findings"]
    with pytest.raises(SnapshotError, match="no finished snapshot"):
        place.require_finished()


def test_a_cluster_without_snapshots_is_no_error(tmp_path: Path) -> None:
    here = SnapshotFolder(LocalFiles(), snapshot_uri(str(tmp_path), "east", HOUSEKEEPING_NOW))
    assert tidy(here, POLICY, HOUSEKEEPING_NOW).removed == ()
