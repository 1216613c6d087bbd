"""The threads of the native core: how many, whose bits they compute, and what they leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from core_alone import CORE_ALONE
from programs import printed_by
from threadpoolctl import threadpool_limits

from kitchenette import _core
from kitchenette.sketching import fwht

pytestmark = pytest.mark.native

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
AFFINITY = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system has no affinity"
)
START = """
import os, threading, time
import numpy as np
from kitchenette import _core
from kitchenette.sketching import fwht
X = np.random.default_rng(0).normal(size=(300, 1024))
"""


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", START + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout.strip()


def test_callers_at_the_same_time_get_the_same_bits():
    shapes = [(64, 1024), (2, 65536), (301, 256), (1, 1 << 19)]
    problems = [np.random.default_rng(i).normal(size=shape) for i, shape in enumerate(shapes)]
    with threadpool_limits(1):
        expected = [fwht(X) for X in problems]
    all_at_once = Barrier(8)

    def work(caller):
        all_at_once.wait()
        for turn in range(40):
            i = (caller + turn) % len(problems)
            if not np.array_equal(fwht(problems[i]), expected[i]):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


@FORKS
@pytest.mark.slow  # a quick test follows
def test_a_forked_child_has_threads_of_its_own():
    # Children of children too, and a parent that goes on.
    assert (
        run(
            """
expected = fwht(X)
def generation(depth):
    child = os.fork()
    if child == 0:
        fine = all(np.array_equal(fwht(X), expected) for _ in range(20))
        os._exit(0 if fine and (depth == 0 or generation(depth - 1)) else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status == 0 and np.array_equal(fwht(X), expected)
print(generation(2))
"""
        )
        == "True"
    )


@FORKS
def test_a_child_can_be_forked_while_another_thread_is_inside_a_call():
    assert (
        run(
            """
expected, stop = fwht(X), threading.Event()
def work():
    while not stop.is_set():
        fwht(X)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
results = []
for _ in range(15):
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(fwht(X), expected) else 1)
    results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in threads:
    thread.join()
print(set(results))
"""
        )
        == "{0}"
    )


@FORKS
def test_a_child_forked_during_an_update_is_told_so_and_does_not_wait_for_ever():
    assert (
        run(
            """
from kitchenette import LeastSquares
Z = np.random.default_rng(0).normal(size=(40_000, 512))
changing, others = LeastSquares(512), LeastSquares(512)
thread = threading.Thread(target=changing.update, args=[Z, Z[:, 0]])
thread.start()
while thread.is_alive():  # until a child is forked during the update
    child = os.fork()
    if child == 0:
        assert others.update(Z[:50], Z[:50, 0]).n_rows == 50
        try:
            changing.merge(others)
        except RuntimeError as error:
            os._exit(7 if "forked while another thread" in str(error) else 1)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7:
        break
else:
    print("the update was too short")
thread.join()
print(changing.n_rows)  # the parent is not affected
"""
        )
        == "40000"
    )


@pytest.mark.slow
def test_nothing_is_printed_if_a_daemon_thread_holds_objects_when_a_process_ends():
    code = """
operator = _core.affine64(n_columns=3, constant=1.0, slope=1.0)
threading.Thread(target=lambda kept: time.sleep(60), args=[operator], daemon=True).start()
"""
    done = subprocess.run(
        [sys.executable, "-c", START + code], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("fwht(X)", marks=pytest.mark.slow),
        "thread = threading.Thread(target=fwht, args=[X])\nthread.start()\nthread.join()",
    ],
    ids=["main thread", "another thread"],
)
def test_a_process_ends_at_once_after_a_call(call):
    run(call)


@pytest.mark.skipif(not _core.openmp, reason="threadpoolctl limits OpenMP")
def test_threadpoolctl_limits_the_threads():
    with threadpool_limits(1):
        assert _core.max_threads() == 1


@pytest.mark.slow
def test_the_environment_limits_the_threads():
    before = run("print(_core.max_threads())", OMP_NUM_THREADS="")
    assert run("print(_core.max_threads())", OMP_NUM_THREADS="1") == "1"
    assert run("print(_core.max_threads())", OMP_NUM_THREADS="4096") == before


@AFFINITY
def test_the_affinity_limits_the_threads():
    code = "import os\nos.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    code += CORE_ALONE + "print(_core.max_threads())"
    assert printed_by(code) == "1"
    assert _core.max_threads() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "max 100000\n"}, 0),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "50000 100000"}, 0.5),
        ("0::/a\n", {"a/cpu.max": "300000 100000", "cpu.max": "400000 100000"}, 3),
        ("0::/not/visible\n", {"cpu.max": "200000 100000"}, 2),
        (
            "5:memory:/\n4:cpu,cpuacct:/docker/x\n0::/\n",
            {"cpu,cpuacct/cpu.cfs_quota_us": "250000", "cpu,cpuacct/cpu.cfs_period_us": "100000"},
            2.5,
        ),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 0),
        ("1:cpuset:/\n", {"cpuset/cpu.cfs_quota_us": "1", "cpuset/cpu.cfs_period_us": "2"}, 0),
        ("nonsense\n::\n", {"cpu.max": "x y"}, 0),
        ("", {}, 0),
    ],
)
def test_the_quota_of_a_container_is_read(tmp_path, membership, files, expected):
    (tmp_path / "membership").write_text(membership)
    for name, text in files.items():
        path = tmp_path / "mount" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    quota = _core.cpu_quota(str(tmp_path / "membership"), str(tmp_path / "mount"))
    assert quota == expected


def test_files_that_do_not_exist_are_no_quota(tmp_path):
    assert _core.cpu_quota(str(tmp_path / "none"), str(tmp_path)) == 0


def test_nothing_runs_on_after_a_call():
    X = np.random.default_rng(0).normal(size=(300, 1024))
    for _ in range(20):
        fwht(X)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.02
