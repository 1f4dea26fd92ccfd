"""Places that snapshots can be read from: paths, and URIs that Spark and Arrow both understand."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

from pulsar_steward.errors import SnapshotError
from pulsar_steward.snapshots.place import place_of
from pulsar_steward.snapshots.read import open_snapshot
from tests.http_serving import serving

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("wasb://c@account/x", "STEWARD_SNAPSHOTS may be a path"),
        ("dbfs:/x", "STEWARD_SNAPSHOTS may be a path"),
        ("hdfs://nowhere.invalid:1/x", "HADOOP_HOME"),
        ("viewfs://nowhere/x", "HADOOP_HOME"),
    ],
)
def test_what_cannot_be_opened_is_told_with_its_remedy(uri: str, words: str) -> None:
    """An address that cannot be opened is refused with an error that names it and the remedy."""
    with pytest.raises(SnapshotError, match=f"^{uri}: .*{words}"):
        place_of(uri)


def test_a_name_with_a_colon_is_a_path() -> None:
    """A path with a colon in the name of a folder is not taken for an address."""
    assert place_of("some/10:30/folder")[1] == "some/10:30/folder"
