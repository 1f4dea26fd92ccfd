"""What PySpark asks Java for again and again is remembered in Python.

PySpark looks up the class of its functions by name for each column that is made, and so does Java then: through
some 280 jars for a short name, through a thousand methods for a function. A diagnosis makes thousands of columns; a
tenth of its processor time, of a small snapshot, went there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASSES = (
    "PythonUtils",
    "PythonSQLUtils",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.classic.SparkSession$",
)
"""Those that PySpark asks for most, by the names that it asks with; they hold functions and constants only."""


class _Remembered:
    """A class of Java, each of whose members is looked up once."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __call__(self, *arguments: Any) -> Any:
        return self._of(*arguments)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._of, name)
        setattr(self, name, member)
        return member


def java_class(spark: SparkSession, name: str) -> Any:
    """A class of Java by its full name; asked for part by part, each part would be looked for as a class of its own."""
    return getattr(spark.sparkContext._jvm, name)  # noqa: SLF001 - there is no other way to Java


def remember(spark: SparkSession) -> None:
    """Has the session's Python remember these classes; carried out again, it changes nothing."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - as above
    for name in _CLASSES:
        found = getattr(jvm, name)
        if not isinstance(found, _Remembered):
            setattr(jvm, name, _Remembered(found))
