"""Where documents are that messages name."""

from __future__ import annotations

from pathlib import Path

from pulsar_steward.runtime.installed_files import document, project_files


def test_a_message_names_a_document_where_it_is(tmp_path: Path) -> None:
    """An installed package's document is named by its path, and the repository's as the repository has it."""
    assert document("start.md", tmp_path) == "docs/start.md"
    (tmp_path / "files").mkdir()
    assert Path(document("start.md", tmp_path)) == tmp_path / "files" / "docs" / "start.md"
    assert (project_files() / "docs" / "start.md").is_file()
