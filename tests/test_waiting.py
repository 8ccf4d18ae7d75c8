"""How long a test waits for what must come."""

import os

import pytest

from tests.waiting import patience


def test_a_wait_is_as_patient_as_the_processor_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    waits = []
    for load in (0.0, 2.0, 6.0, 1_000.0):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        waits.append(patience())
    idle, full, crowded, hopeless = waits
    assert idle == full and crowded == pytest.approx(3 * idle)
    assert crowded < hopeless, "it ends all the same"


def test_a_wait_ends_before_the_test_does_that_would_say_what_it_waited_for(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (1_000.0, 0.0, 0.0))
    assert patience() < float(pytestconfig.getini("timeout"))
