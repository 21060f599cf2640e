"""The commands as a person types them, on the stand-in: train, resume, eval, selftest, doctor, refusals."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "story"))
sys.path.append(str(Path(__file__).parents[1] / "train"))

from running import bits
from standin import Standin
from tiny_scene import write_tiny_scene

from splatmeter.backends.cuda import images
from splatmeter.backends.cuda import selftest as checks_of
from splatmeter.backends.cuda.selftest import Check
from splatmeter.cli import export_page, main
from splatmeter.errors import UsageError
from splatmeter.lab.plan import protocol
from splatmeter.models.opening import Opened
from splatmeter.train import container


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, scene: Path) -> None:
    """Shared by the tests here, so that the self-test is passed once."""
    monkeypatch.setenv("SPLATMETER_CACHE", str(scene.parent / "cache"))


def words(scene: Path, folder: Path, *more: str) -> list[str]:
    settings = ["--eval", "--iterations", "12", "--test-iterations", "12", "--densify-from-iter", "3"]
    settings += ["--densification-interval", "5", "--max-gaussians", "150", "--quiet"]
    return ["train", "-s", str(scene), "-m", str(folder), *settings, *more]


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_a_training_runs_on_the_card_and_says_so(
    standin: Standin, scene: Path, tmp_path: Path, device: str
) -> None:
    folder = tmp_path / "run"
    assert main.main(words(scene, folder, "--device", device, "--checkpoint-iterations", "7")) == 0
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    told = lines[0]["environment"]
    assert told["backend"] == "cuda" and told["backend_device"] == "cuda:0" and told["backend_fused"] is True
    progress = [line for line in lines if line["event"] == "progress"]
    assert all(line["device_memory_bytes"] > 0 for line in progress)
    if device == "auto":
        return
    end = ["-m", str(folder), "--device", "cuda"]
    assert main.main(["eval", *end]) == 0
    assert main.main(["render", *end, "--quiet", "--skip-train"]) == 0
    last = container.read(folder / "chkpnt7.safetensors")[1]
    assert last["engine"]["arithmetic"].startswith("cuda stand-in")
    assert main.main(["train", "-m", str(folder), "--resume", "--iterations", "14", "--quiet", *end[2:]]) == 0


def test_the_self_test_prints_one_block_without_paths(
    standin: Standin, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["selftest", "--quick", "--threads", "1"]) == 0
    said = capsys.readouterr().out
    assert "stand-in" in said and "all right" in said and "WRONG" not in said
    assert str(Path.home()) not in said and str(standin.path) not in said


def test_a_card_that_is_wrong_is_named_with_the_operation_and_not_used(
    standin: Standin,
    scene: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SPLATMETER_CACHE", str(tmp_path / "fresh"))

    def wrong(*_: object) -> list[Check]:
        return [Check("render, mip", 1e-7, 2e-5), Check("settling", float("nan"), 2e-3)]

    monkeypatch.setattr("splatmeter.backends.cuda.trust.checks", wrong)
    assert main.main(words(scene, tmp_path / "a", "--device", "cuda")) == 69
    assert "failed its self-test: settling" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
    assert main.main(words(scene, tmp_path / "b")) == 0
    told = json.loads((tmp_path / "b" / "events.jsonl").read_text().splitlines()[0])["environment"]
    assert told["backend"] == "native" and "settling" in told["backend_card_not_used"]
    monkeypatch.setattr(checks_of, "checks", wrong)
    assert main.main(["selftest", "--quick"]) == 1
    assert "1 wrong" in capsys.readouterr().out


def test_a_driver_that_refuses_our_kernels_is_named_and_not_used(
    standin: Standin,
    scene: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A damaged cubin for this card gives way to PTX; then PTX is damaged too."""
    refused = (120, False, b"\x7fELF damaged")
    monkeypatch.setattr("splatmeter.backends.cuda.card.images", lambda: [*images(), refused])
    assert main.main(["selftest", "--quick", "--threads", "1"]) == 0
    assert "PTX compute_80" in capsys.readouterr().out
    monkeypatch.setattr("splatmeter.backends.cuda.card.images", lambda: [refused, (80, True, b"damaged")])
    assert main.main(words(scene, tmp_path / "a", "--device", "cuda")) == 69
    said = capsys.readouterr().err
    assert "does not take our kernels (cubin sm_120" in said and "Traceback" not in said
    assert not (tmp_path / "a").exists()


def test_a_card_that_has_passed_is_not_asked_again(
    standin: Standin, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main.main(words(scene, tmp_path / "a", "--device", "cuda")) == 0

    def never(*_: object) -> list[Check]:
        raise AssertionError("asked again")

    monkeypatch.setattr("splatmeter.backends.cuda.trust.checks", never)
    assert main.main(words(scene, tmp_path / "b", "--device", "cuda")) == 0


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("devices", 0, "no card"),
        ("capability", 70, "compute capability 7.0"),
        ("memory", 60 << 20, "on the card"),
    ],
)
def test_every_refusal_is_one_sentence_and_code_69(
    schedule: Standin,
    scene: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    option: str,
    value: int,
    said: str,
) -> None:
    schedule.option(option, value)
    assert main.main(words(scene, tmp_path / "a", "--device", "cuda")) == 69
    complaint = capsys.readouterr().err
    assert said in complaint and complaint.count("\n") == 1
    assert "--photo-cache" not in complaint
    assert not (tmp_path / "a").exists()


def test_without_a_driver_the_cpu_trains_and_cuda_is_refused(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPLATMETER_LIBCUDA", "/nonexistent/libcuda.so.1")
    assert main.main(words(scene, tmp_path / "a", "--device", "cuda")) == 69
    assert "No NVIDIA driver was found" in capsys.readouterr().err
    assert main.main(["selftest"]) == 69
    assert main.main(words(scene, tmp_path / "b")) == 0
    assert main.main(words(scene, tmp_path / "c", "--device", "gpu")) == 64
    assert "--device gpu makes no sense" in capsys.readouterr().err


def test_doctor_names_the_card(standin: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    main.main(["doctor"])
    assert "card stand-in (emulated, no card)" in capsys.readouterr().out


def test_a_lab_pins_the_device_it_begins_with(
    standin: Standin, scene: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = tmp_path / "lab"
    assert main.main(["lab", "--lab", str(lab), "init", "--scene", str(scene)]) == 0
    assert protocol.read_protocol(lab / "protocol.toml").options[-2:] == ("--device", "cuda:0")


def test_a_card_that_breaks_in_its_self_test_gives_way_to_the_cpu(
    schedule: Standin,
    scene: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SPLATMETER_CACHE", str(tmp_path / "fresh"))
    schedule.option("launches", 4)
    assert main.main(words(scene, tmp_path / "a", "--device", "cuda")) == 69
    assert "cuda:0 cannot be used" in capsys.readouterr().err
    schedule.forget_error()
    schedule.option("launches", 4)
    assert main.main(words(scene, tmp_path / "b")) == 0
    told = json.loads((tmp_path / "b" / "events.jsonl").read_text().splitlines()[0])["environment"]
    assert told["backend"] == "native" and "cannot be used" in told["backend_card_not_used"]


def test_a_card_that_breaks_in_the_self_test_is_told_with_the_place(
    schedule: Standin, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule.option("launches", 100)
    assert main.main(["selftest", "--device", "cuda", "--quick", "--threads", "1"]) == 1
    said = capsys.readouterr().out
    assert "what follows transmittance, plain: The card failed" in said and "BROKEN" in said
    assert said.splitlines()[-1].startswith("1 wrong: what follows transmittance, plain")


# ---- to the last bit, and from one device to the other ----------------------------------------------------
def test_going_on_after_a_stop_gives_the_same_bits(standin: Standin, scene: Path, tmp_path: Path) -> None:
    card = ("--device", "cuda", "--checkpoint-iterations", "6", "12")
    assert main.main(words(scene, tmp_path / "straight", *card)) == 0
    assert main.main(words(scene, tmp_path / "cut", *card, "--iterations", "6")) == 0
    again = ["train", "-m", str(tmp_path / "cut"), "--resume", "--iterations", "12", "--quiet", *card]
    assert main.main(again) == 0
    one, other = (tmp_path / name / "chkpnt12.safetensors" for name in ("straight", "cut"))
    assert bits(one) == bits(other)


@pytest.mark.parametrize(("first", "second"), [("cuda", "cpu"), ("cpu", "cuda")])
def test_a_run_goes_on_with_the_other_device_and_says_so(
    standin: Standin, scene: Path, tmp_path: Path, first: str, second: str
) -> None:
    folder = tmp_path / "run"
    begun = words(scene, folder, "--iterations", "6", "--checkpoint-iterations", "6", "--device", first)
    assert main.main(begun) == 0
    again = ["train", "-m", str(folder), "--resume", "--iterations", "12", "--quiet", "--device", second]
    assert main.main(again) == 0
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert any("not to the last bit" in line.get("message", "") for line in lines)
    devices = [line["environment"]["backend_device"] for line in lines if "environment" in line]
    assert [device.split(":")[0] for device in devices] == [first, second]


def test_a_checkpoint_is_looked_at_with_the_card(
    standin: Standin, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    assert main.main(words(scene, folder, "--device", "cuda", "--checkpoint-iterations", "12")) == 0
    seen = []

    def enough(opened: Opened, _: object) -> None:
        seen.append(opened.model.table)
        raise UsageError("Seen.")

    monkeypatch.setattr(export_page, "made", enough)
    for device in ("cpu", "cuda"):
        assert main.main(["view", str(folder / "chkpnt12.safetensors"), "--device", device]) == 64
    np.testing.assert_allclose(seen[0].geometry[:, :12], seen[1].geometry[:, :12], atol=1e-6)
    np.testing.assert_allclose(seen[0].harmonics, seen[1].harmonics, atol=1e-6)
    ply = str(folder / "point_cloud" / "iteration_12" / "point_cloud.ply")
    assert main.main(["view", ply, "--device", "cuda:7"]) == 69
    assert len(seen) == 2


def test_profile_tells_each_kernel_beside_the_cards_limits(
    standin: Standin, scene: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["profile", "-s", str(scene), "--iterations", "2", "--json", str(tmp_path / "p.json")]
    assert main.main([*where, "--device", "cuda"]) == 0
    said = capsys.readouterr().out
    assert "448 GB/s" in said and "computed" in said and "a tile of 16x16" in said
    told = json.loads((tmp_path / "p.json").read_text())
    kernels = {kernel["name"]: kernel for kernel in told["kernels"]}
    assert kernels["blend_backward"]["issue_share"] > 0 and kernels["update"]["bandwidth_share"] > 0
    assert kernels["scan_top"]["bandwidth_share"] is None
    assert told["counts"]["pairs"] > 0 and told["limits"]["multiprocessors"] == 36


def test_exposures_are_refused_on_the_card_and_auto_takes_the_cpu_and_says_so(
    standin: Standin, scene: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--exposure", "affine", "--checkpoint-iterations", "12"]
    assert main.main(words(scene, tmp_path / "a", "--device", "cuda", *asked)) == 69
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert "--exposure affine is not there yet on a card (cuda:0): use --device cpu." in said
    assert not (tmp_path / "a").exists()
    assert main.main(words(scene, tmp_path / "b", *asked)) == 0
    assert "not there yet on a card: the CPU does it." in capsys.readouterr().err
    told = json.loads((tmp_path / "b" / "events.jsonl").read_text().splitlines()[0])["environment"]
    assert told["backend"] == "native" and "--exposure affine" in told["backend_card_not_used"]
    assert (tmp_path / "b" / "chkpnt12.safetensors").is_file()
