"""`DataFrame.mapInArrow` without pandas, which pyspark 4.3 asks for although nothing of it is used there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa


def map_in_arrow(
    frame: DataFrame, function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], ddl: str
) -> DataFrame:
    """A frame of the batches that the function makes of each partition's batches.

    Args:
        frame: What the function is given.
        function: Is pickled, and run by Spark's Python workers.
        ddl: The columns of the batches that it yields.
    """
    made = UserDefinedFunction(function, returnType=ddl, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = made(*(frame[name] for name in frame.columns))
    # The same two inner objects that `DataFrame.mapInArrow` itself passes on; no barrier, no resource profile.
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)  # noqa: SLF001 - no other door
