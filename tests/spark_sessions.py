"""Sessions of Spark for tests, and whether there can be any."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from typing import Any

LEAST_JAVA = 17
SOURCES = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for processes that live for seconds
SETTINGS = {
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
}


def why_not() -> str | None:
    """Why Spark cannot be tested here, or None."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'kitchenette[spark]'"
    version = java_version()
    if version is None or version < LEAST_JAVA:
        return f"Spark needs Java {LEAST_JAVA}; there is {version or 'none'}"
    return None


def java_version() -> int | None:
    """The version of the Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return None
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', told)
    return int(found.group(1)) if found else None


@contextmanager
def standalone(folder: Path, n_workers: int) -> Iterator[str]:
    """The address of a cluster whose workers are processes of this machine with hosts of their own.

    Spark runs copies of slow tasks on other hosts only, so `local-cluster` does not do.
    """
    prepare_environment()
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    environment = {**os.environ, "SPARK_DAEMON_JAVA_OPTS": QUICK_START, "SPARK_NO_DAEMONIZE": "1"}
    deploy = [str(Path(os.environ["SPARK_HOME"], "bin", "spark-class"))]

    def started(name: str, *options: str) -> subprocess.Popen[bytes]:
        log = (folder / f"{name}-{len(running)}.log").open("wb")
        command = [*deploy, f"org.apache.spark.deploy.{name.lower()}.{name}", "--webui-port", "0"]
        return subprocess.Popen([*command, *options], env=environment, stdout=log, stderr=log)

    running: list[subprocess.Popen[bytes]] = []
    try:
        running.append(started("Master", "--host", "127.0.0.1", "--port", str(port)))
        for number in range(n_workers):
            options = ["--host", f"127.0.0.{number + 2}", "--cores", "1", "--memory", "1g"]
            work = str(folder / f"work-{number}")
            running.append(started("Worker", *options, "--work-dir", work, address))
        yield address
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()


def prepare_environment() -> None:
    """Let Spark's processes find Python, the package, and Spark itself."""
    import pyspark

    paths = [path for path in sys.path if path in SOURCES or path.endswith("/src")]
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)


def session(master: str, **settings: str) -> Any:
    """A session of Spark; ``connect`` stands for a server of Spark Connect in this machine."""
    prepare_environment()
    from pyspark.sql import SparkSession

    made: Any = SparkSession.builder
    made = made.remote("local[2]") if master == "connect" else made.master(master)
    for name, value in {**SETTINGS, **settings}.items():
        made = made.config(name, value)
    return made.getOrCreate()
