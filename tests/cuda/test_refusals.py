"""What the card cannot do is said in one sentence; errors stick, and a card that is gone is called lost."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from parity_scenes import SETTINGS, camera, random_table
from standin import Standin
from twins import CardTwin, images

from splatmeter import _native  # type: ignore[attr-defined]

HERE = Path(__file__).parent
OPEN = f"""
import sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent / "parity")!r}]
from splatmeter import _native
from twins import CardTwin, images
try:
    card = CardTwin(int(sys.argv[1]))
    print("opened", card.card.image)
except _native.CardError as problem:
    print(*problem.args, sep="|")
"""


def opened(device: int = 0, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(device)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("variables", "kind", "words"),
    [
        ({"SPLATMETER_LIBCUDA": "/nowhere/libcuda.so.1"}, "no driver", "--device cpu"),
        ({"STANDIN_DEVICES": "0"}, "no card", "--device cpu"),
        ({"STANDIN_DRIVER": "12040"}, "too old", "CUDA 12.4; update it to R570"),
        ({"STANDIN_CAPABILITY": "61"}, "too old", "compute capability 6.1"),
    ],
    ids=["no driver", "no card", "an old driver", "an old card"],
)
def test_a_refusal_is_one_sentence(
    standin: Standin, variables: dict[str, str], kind: str, words: str
) -> None:
    found, sentence = opened(**variables).split("|")
    assert found == kind and words in sentence
    assert sentence.endswith(".") and "\n" not in sentence


def test_a_library_that_is_no_driver_is_refused(standin: Standin) -> None:
    found, sentence = opened(SPLATMETER_LIBCUDA="libm.so.6").split("|")
    assert found == "too old" and "cuInit" in sentence


def test_another_card_is_refused_by_its_number(standin: Standin) -> None:
    found, sentence = opened(device=1).split("|")
    assert found == "no card" and "cuda:1" in sentence and "this machine has 1" in sentence
    assert opened(device=1, STANDIN_DEVICES="2") == "opened PTX compute_80"


@pytest.mark.parametrize(("capability", "image"), [(75, 75), (86, 80), (120, 80), (210, 80)])
def test_the_best_image_is_chosen(standin: Standin, capability: int, image: int) -> None:
    assert opened(STANDIN_CAPABILITY=str(capability)) == f"opened PTX compute_{image}"


def test_an_exact_cubin_comes_before_ptx(schedule: Standin) -> None:
    """To the stand-in whatever names the kernels is an image."""
    schedule.option("capability", 86)
    cubin = b"\x7fELF " + images()[0][2]
    assert _native.Card(0, [*images(), (86, False, cubin)]).image == "cubin sm_86"
    assert _native.Card(0, [(86, False, cubin)]).image == "cubin sm_86"
    assert _native.Card(0, [*images(), (89, False, cubin)]).image == "PTX compute_80"


def test_a_cubin_that_the_driver_refuses_gives_way_to_ptx(schedule: Standin) -> None:
    schedule.option("capability", 86)
    damaged = (86, False, b"\x7fELF no kernels")
    card = _native.Card(0, [*images(), damaged])
    assert card.image == "PTX compute_80"
    with pytest.raises(_native.CardError) as problem:
        _native.Card(0, [(80, True, b"no kernels either"), damaged])
    kind, sentence = problem.value.args
    assert kind == "too old" and "cubin sm_86" in sentence and "PTX compute_80" in sentence
    assert sentence.endswith("--device cpu.") and "\n" not in sentence


def test_arguments_that_differ_from_the_ptx_are_noticed(standin: Standin) -> None:
    text = images()[0][2]
    begin = text.index(b"project_param_0[")
    size = int(text[begin + 16 : text.index(b"]", begin)])
    changed = text.replace(b"project_param_0[%d]" % size, b"project_param_0[%d]" % (size + 8), 1)
    with pytest.raises(_native.CardError, match="arguments of project differ"):
        _native.Card(0, [(75, True, changed)])
    with pytest.raises(_native.CardError, match="settled"):
        _native.Card(0, [(75, True, text.replace(b".entry settled(", b".entry another(", 1))])


def test_an_error_sticks_until_the_end(schedule: Standin) -> None:
    card = CardTwin()
    card.put(random_table(30))
    schedule.option("launches", 5)
    for _ in range(2):
        with pytest.raises(_native.CardError) as problem:
            card.forward(camera(40, 30), SETTINGS["mip"])
        assert problem.value.args[0] == "lost"
    schedule.option("launches", -1)
    with pytest.raises(_native.CardError):  # the context is gone, whatever the card does now
        card.forward(camera(40, 30), SETTINGS["mip"])
    schedule.forget_error()
    assert np.isfinite(card.forward(camera(40, 30), SETTINGS["mip"])[0]).all()


def test_no_memory_is_an_error_with_numbers(schedule: Standin) -> None:
    schedule.option("foreign", (16 << 30) - (1 << 20) - schedule.count("bytes"))
    card = CardTwin()
    with pytest.raises(_native.CardError) as problem:
        card.put(random_table(20_000))
    kind, sentence = problem.value.args
    assert kind == "out of memory" and "GB are needed and 0.00 GB may be used" in sentence


def test_the_host_cannot_peek_at_the_cards_memory(standin: Standin) -> None:
    """A pointer of the card followed by the host ends the process, as it would beside a real card."""
    peek = """
import ctypes, os
library = ctypes.CDLL(os.environ["SPLATMETER_LIBCUDA"])
address = ctypes.c_uint64()
library.cuInit(0)
context = ctypes.c_void_p()
library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(64)) == 201  # no context chosen
library.cuCtxSetCurrent(context)
assert library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(64)) == 0
print(address.value > 0, flush=True)
ctypes.string_at(address.value, 4)
"""
    done = subprocess.run([sys.executable, "-c", peek], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True" and done.returncode == -11


@pytest.mark.parametrize(
    ("settings", "words"),
    [(SETTINGS["mip"], "size out of range"), (None, "max_alpha")],
    ids=["an image too large", "an opacity that hides all"],
)
def test_malformed_requests_are_refused(card: CardTwin, settings: object, words: str) -> None:
    card.put(random_table(3))
    view = camera(40, 30)
    row = [*view.rotation.ravel(), *view.translation, 40.0, 40.0, 20.0, 15.0, 40.0, 30.0]
    color, transmittance = np.empty((3, 30, 40), np.float32), np.empty((30, 40), np.float32)
    drawing = (3, 0.1, True, [0.0, 0.0, 0.0], 1.0 if settings is None else 0.99, False)
    if settings is not None:
        row[16], color, transmittance = 0.0, np.empty((3, 30, 0), np.float32), np.empty((30, 0), np.float32)
    with pytest.raises(ValueError, match=words):
        card.card.forward(row, drawing, color, transmittance)


def test_the_standin_says_no_to_launches_that_no_card_would_take(standin: Standin) -> None:
    library = ctypes.CDLL(str(standin.path))
    module, function, context = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    library.cuCtxSetCurrent(context)
    assert library.cuModuleLoadDataEx(ctypes.byref(module), images()[0][2] + b"\0", 0, None, None) == 0
    assert library.cuModuleGetFunction(ctypes.byref(function), module, b"settle") == 0
    arguments = ctypes.create_string_buffer(4096)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(arguments))
    for grid, threads in ((0, 256), (1, 257), (1, 0)):
        assert library.cuLaunchKernel(function, grid, 1, 1, threads, 1, 1, 0, None, pointers, None) == 1
    assert library.cuModuleLoadDataEx(ctypes.byref(module), b"no image\0", 0, None, None) == 200
