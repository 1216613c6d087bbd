"""How often checkpoints are written, with a clock of our own."""

from __future__ import annotations

from itertools import cycle, islice

import numpy as np
import pytest

from kitchenette import Fastfood, KernelRegressor
from kitchenette.jobs import checkpoint as checkpoints
from kitchenette.jobs.checkpoint import LARGEST_SHARE, Checkpoint, CheckpointWriter
from kitchenette.training import prepare


class Clock:
    """A clock that only work moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def works(self, seconds):
        self.now += seconds


@pytest.fixture
def prepared():
    X = np.random.default_rng(0).normal(size=(50, 2))
    return prepare(KernelRegressor(Fastfood(n_components=512, random_state=0)), X, X[:, 0])


@pytest.mark.parametrize("disk", [[0.01], [3.0], [0.1, 0.5, 2.0, 0.05]])
def test_checkpoints_take_a_small_share_of_the_time(disk, prepared, tmp_path, monkeypatch):
    clock, seconds = Clock(), cycle(disk)
    monkeypatch.setattr(checkpoints, "perf_counter", clock)
    monkeypatch.setattr(checkpoints, "save", lambda *_: clock.works(next(seconds)))
    writer = CheckpointWriter(tmp_path / "model.checkpoint")
    some = Checkpoint.__new__(Checkpoint)
    object.__setattr__(some, "prepared", prepared)
    for _ in range(20_000):
        clock.works(0.1)
        writer.maybe(some)
    assert writer.count >= 2
    assert writer.seconds == pytest.approx(sum(islice(cycle(disk), writer.count)))
    # A disk may become slower once without warning.
    assert writer.seconds <= 1.05 * LARGEST_SHARE * clock.now + max(disk)
    assert LARGEST_SHARE < 0.05


def test_checkpoints_come_as_often_as_they_are_asked_for(prepared, tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(checkpoints, "perf_counter", clock)
    monkeypatch.setattr(checkpoints, "save", lambda *_: clock.works(0.001))
    writer = CheckpointWriter(tmp_path / "model.checkpoint", every=2.0)
    some = Checkpoint.__new__(Checkpoint)
    object.__setattr__(some, "prepared", prepared)
    for _ in range(1000):
        clock.works(0.5)
        writer.maybe(some)
    assert writer.count == pytest.approx(250, abs=3)
