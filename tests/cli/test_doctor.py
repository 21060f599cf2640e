"""`splatmeter doctor` finds what is there, and fails only for what is needed."""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest

from splatmeter.cli import doctor
from splatmeter.cli.main import main


def test_every_finding_has_a_state_and_the_code_follows_them(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    findings = json.loads(capsys.readouterr().out)
    states = {finding["name"]: finding["state"] for finding in findings}
    assert states["python"] == states["numpy"] == "ok"
    assert {"native engine", "threads", "memory", "torch", "lpips vgg", "ffmpeg"} <= states.keys()
    assert code == (1 if "problem" in states.values() else 0)
    engine_is_there = importlib.util.find_spec("splatmeter._native") is not None
    assert states["native engine"] == ("ok" if engine_is_there else "problem")


def test_a_missing_engine_is_a_problem_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import splatmeter

    monkeypatch.delattr(splatmeter, "_native", raising=False)
    monkeypatch.setitem(sys.modules, "splatmeter._native", None)
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "problem   native engine" in shown and "pip install" in shown


def test_a_missing_extra_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    finding = doctor._extra("torch", "LPIPS")
    assert finding.state == "optional" and "LPIPS" in finding.detail
