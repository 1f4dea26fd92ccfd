"""Arguments with which a process that runs the Spark jobs many times starts its Spark."""

SUBMIT = (
    "--conf spark.ui.showConsoleProgress=false"
    " --conf 'spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'"
    " pyspark-shell"
)
"""As the jobs start, but for hundreds of them in one process: its compiled code outgrows the 48 MB that are usual."""
