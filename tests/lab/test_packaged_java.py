"""Java from a package, for machines without one."""

import subprocess
from pathlib import Path

from lab.packaged_java import install


def test_what_the_runtime_was_built_without_is_not_asked_of_it(tmp_path: Path) -> None:
    """The packaged Java drops the module option that it cannot grant, and passes every other argument unchanged."""
    runtime = tmp_path / "a runtime" / "java"
    runtime.parent.mkdir()
    runtime.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n", encoding="utf-8")
    java = install(tmp_path / "home", runtime)
    words = ["-cp", "a b/*", "--add-modules=jdk.incubator.vector", "", "-Dx=$HOME", "Main"]
    output = subprocess.run([java, *words], check=True, capture_output=True, text=True).stdout
    assert java == tmp_path / "home" / "bin" / "java"
    assert output.splitlines() == ["-cp", "a b/*", "", "-Dx=$HOME", "Main"]
