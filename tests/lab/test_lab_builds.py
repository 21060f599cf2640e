"""Kernel phases: builds as people type them, submodules, logs that stay, and what ptxas told in them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_lab import add, carried_out, make_lab, trainer

from splatmeter.cli.lab import run as lab_command
from splatmeter.errors import InputError, MissingFile, UsageError
from splatmeter.lab.handlog import audit_log, parse_log
from splatmeter.lab.log import write_log
from splatmeter.lab.log.log_contents import document
from splatmeter.lab.monitor import kernels
from splatmeter.lab.plan.build_steps import build_steps, build_words, words_after_build
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.report.write import write_report
from splatmeter.lab.session import submodules
from splatmeter.lab.session.kept_builds import kernels_of
from splatmeter.lab.session.worktree import built


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always")
    answer = subprocess.run(
        ["git", *settings, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return answer.stdout.strip()


def repository(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "--initial-branch", "main")
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.mark.parametrize(
    ("typed", "build", "foreign"),
    [
        (["--build", "pip install -e ./submodules/x --no-build-isolation"],
         ("pip", "install", "-e", "./submodules/x", "--no-build-isolation"), ()),
        (["--build", "--", "cmake", "--build", "build"], ("cmake", "--build", "build"), ()),
        (["--build", "--", "cmake", "--build", "a b", "--", "--fast"], ("cmake", "--build", "a b"),
         ("--fast",)),
        (["--build", "{python}", "setup.py", "--", "--fast"], ("{python}", "setup.py"), ("--fast",)),
        (["--build", "A=1 make 'x y' && make install"], ("A=1", "make", "x y", "&&", "make", "install"), ()),
        (["--build", "make"], ("make",), ()),
    ],
)  # fmt: skip
def test_a_build_may_have_words_with_dashes(
    tmp_path: Path, typed: list[str], build: tuple[str, ...], foreign: tuple[str, ...]
) -> None:
    lab = make_lab(tmp_path / "lab")
    assert lab_command(["--lab", str(lab.root), "phase", "add", "x", *typed]) == 0
    made = lab.phases.get("x")
    assert (made.build, made.options) == (build, foreign) and made.differs()
    assert lab_command(["--lab", str(lab.root), "phase", "set", "x", "--title", "t"]) == 0
    assert lab.phases.get("x").build == build


def test_a_build_that_cannot_be_meant_is_refused_with_advice(tmp_path: Path) -> None:
    lab = make_lab(tmp_path / "lab")
    command = ["--lab", str(lab.root), "phase", "add", "x", "--build"]
    for words, complaint in (
        (["pip", "install", "-e", "."], "quote it"),
        (["make | tee log"], "without a shell"),
        (["make 'x"], "cannot be read"),
        (["make &&"], "lacks a command"),
        (["A=1"], "lacks a command"),
        (["--"], "lacks a command"),
    ):
        with pytest.raises(UsageError, match=complaint):
            lab_command([*command, *words])
    assert lab.phases.names() == ["baseline"]


def test_variables_before_a_command_are_its_own() -> None:
    first, second = build_steps(build_words(["TORCH_CUDA_ARCH_LIST='8.0 8.9' pip install . && make A=1"]))
    assert first.variables == {"TORCH_CUDA_ARCH_LIST": "8.0 8.9"} and first.arguments[0] == "pip"
    assert second.arguments == ("make", "A=1") and second.variables == {}
    assert words_after_build(["run", "x"]) == (["run", "x"], [])


def with_submodules(tmp_path: Path) -> Path:
    """trainer/submodules/raster/third, two deep."""
    inner = repository(tmp_path / "origin" / "inner", third_h="// third\n")
    outer = repository(tmp_path / "origin" / "outer", blend_cu="int registers = 96;\n")
    git(outer, "submodule", "--quiet", "add", str(inner), "third")
    git(outer, "commit", "-qm", "with its own submodule")
    made = repository(tmp_path / "trainer", train_py="")
    git(made, "submodule", "--quiet", "add", str(outer), "submodules/raster")
    git(made, "submodule", "--quiet", "update", "--init", "--recursive")
    git(made, "commit", "-qm", "with a rasterizer")
    return made


def test_worktrees_get_their_submodules_without_a_network(tmp_path: Path) -> None:
    made = with_submodules(tmp_path)
    shutil.rmtree(tmp_path / "origin")  # whoever asks for it now fails
    before = (made / ".git" / "config").read_text()
    lab = Lab(tmp_path / "lab")
    lab.root.mkdir()
    protocol = Protocol(trainer="mip-splatting", directory=str(made))
    found = built(lab, [Phase("baseline", revision="HEAD")], protocol)
    assert found.worktree
    assert (found.worktree / "submodules/raster/blend.cu").read_text() == "int registers = 96;\n"
    assert (found.worktree / "submodules/raster/third/third.h").exists()
    assert git(found.worktree, "status", "--porcelain") == ""
    assert (made / ".git" / "config").read_text() == before

    inside = made / "submodules" / "raster"
    (inside / "blend.cu").write_text("int registers = 40;\n")
    (lab.root / "inside.patch").write_text(git(made, "diff", "--submodule=diff") + "\n")
    patched = built(
        lab, [Phase("b", revision="HEAD"), Phase("p", parent="b", patch="inside.patch")], protocol
    )
    assert patched.worktree
    assert "40" in (patched.worktree / "submodules/raster/blend.cu").read_text()

    git(inside, "commit", "-qam", "fewer registers")
    (lab.root / "moved.patch").write_text(git(made, "diff") + "\n")
    assert submodules.moved_by((lab.root / "moved.patch").read_text()) == {
        "submodules/raster": git(inside, "rev-parse", "HEAD")
    }
    moved = built(lab, [Phase("b", revision="HEAD"), Phase("p", parent="b", patch="moved.patch")], protocol)
    assert moved.worktree and "40" in (moved.worktree / "submodules/raster/blend.cu").read_text()


def test_a_shallow_checkout_lends_what_no_branch_of_it_names(tmp_path: Path) -> None:
    origin = repository(tmp_path / "origin", blend_cu="int registers = 96;\n")
    (origin / "blend.cu").write_text("int registers = 40;\n")
    git(origin, "commit", "-qam", "fewer")
    older = git(origin, "rev-parse", "HEAD~1")
    git(tmp_path, "clone", "--quiet", "--depth", "1", origin.as_uri(), "here")
    git(tmp_path / "here", "fetch", "--quiet", "--depth", "1", "origin", older)
    git(tmp_path / "here", "config", "submodule.recurse", "true")
    assert submodules._cloned(tmp_path / "here", tmp_path / "there" / "blend", older)
    assert "96" in (tmp_path / "there" / "blend" / "blend.cu").read_text()
    assert not submodules._cloned(tmp_path / "here", tmp_path / "nowhere", "0" * 40)


def test_a_submodule_that_nobody_has_is_named(tmp_path: Path) -> None:
    made = with_submodules(tmp_path)
    shutil.rmtree(tmp_path / "origin")
    git(made, "submodule", "deinit", "--force", "--all")
    shutil.rmtree(made / ".git" / "modules")
    lab = Lab(tmp_path / "lab")
    lab.root.mkdir()
    protocol = Protocol(trainer="mip-splatting", directory=str(made))
    for _ in range(2):  # the second time a leftover of the first is in the way
        with pytest.raises(
            InputError, match=r"submodules/raster .* no checkout here has.*while you are online"
        ):
            built(lab, [Phase("baseline", revision="HEAD")], protocol)


OLD_STYLE = """[1/2] /usr/local/cuda/bin/nvcc -Xptxas -v -c blend.cu
ptxas info    : Compiling entry function '_Z5blendPf' for 'sm_86'
ptxas info    : Function properties for _Z5blendPf
    16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 40 registers, 4096+16 bytes smem, 352 bytes cmem[0], 8 bytes cmem[2]
"""
ONE_LINE = """  ptxas info : Compiling entry function '_Z5blendPf' for 'sm_90a'
  ptxas info : Used 40 registers, 12 bytes spill stores, 20 bytes spill loads, 16 bytes stack frame
"""
MIXED = """ptxas info    : Compiling entry function '_Z1aPf' for 'sm_80'
ptxas info    : Compiling entry function '_Z1bPf' for 'sm_80'
ptxas info    : Function properties for _Z1aPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 11 registers
ptxas info    : Function properties for _Z1bPf
    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 22 registers
nvlink info    : Function properties for '_Z1aPf':
nvlink info    : used 99 registers, 0 stack, 0 bytes smem
"""
DUMPED = """Fatbin elf code:
arch = sm_89
Resource usage:
 Function _Z5blendPf:
  REG:40 STACK:16 SHARED:4096 LOCAL:0 CONSTANT[0]:360 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
WARNED = """ptxas info    : Compiling entry function '_Z5blendPf' for 'sm_86'
ptxas warning : Registers are spilled to local memory in function '_Z5blendPf', 8 bytes spill stores, \
12 bytes spill loads
ptxas info    : Used 32 registers
ptxas warning : Value of threads per SM for entry _ZN39_GLOBAL__N__7a924503_8_blend_cu is out of range. \
.minnctapersm will be ignored
"""


def test_every_style_of_ptxas_is_read() -> None:
    assert kernels.parse(OLD_STYLE) == [kernels.Kernel("_Z5blendPf", "sm_86", 40, 16, 12, 20, 4112)]
    assert kernels.parse(ONE_LINE) == [kernels.Kernel("_Z5blendPf", "sm_90a", 40, 16, 12, 20, 0)]
    assert [(k.name, k.registers, k.spills) for k in kernels.parse(MIXED)] == [
        ("_Z1aPf", 11, False), ("_Z1bPf", 22, True),
    ]  # fmt: skip
    assert kernels.parse(DUMPED) == [kernels.Kernel("_Z5blendPf", "sm_89", 40, 16, None, None, 4096)]
    (warned,) = kernels.parse(WARNED)
    assert (warned.registers, warned.spill_store_bytes, warned.spill_load_bytes) == (32, 8, 12)
    assert ["ignored" in text for text in kernels.build_warnings(WARNED)] == [False, True]


def test_a_kernel_is_found_again_in_another_folder_and_with_other_arguments() -> None:
    def one(name: str, registers: int) -> list[kernels.Kernel]:
        return [kernels.Kernel(name, "sm_80", registers), kernels.Kernel("_Z5otherPf", "sm_80", 8)]

    hidden = "_ZN33_GLOBAL__N__{}_4_k_cu_plain6hiddenEPf"
    changes = kernels.compare_kernels(one(hidden.format("3a61c4d7"), 96), one(hidden.format("69196a25"), 40))
    assert [(c.before and c.before.registers, c.after and c.after.registers) for c in changes] == [
        (96, 40),
        (8, 8),
    ]
    if not shutil.which("c++filt"):
        pytest.skip("no c++filt: kernels with other arguments were not tried")
    changes = kernels.compare_kernels(one("_Z5blendPf", 96), one("_Z5blendPfi", 40))
    assert [(c.before and c.before.registers, c.after and c.after.registers) for c in changes] == [
        (96, 40),
        (8, 8),
    ]
    names = kernels.readable(["_Z9templatedILi256EEvPfPKf", "_Z5blendPf", "_Z5blendPfi"])
    assert kernels.short_names(names) == {
        "_Z9templatedILi256EEvPfPKf": "templated<256>", "_Z5blendPf": "blend(float*)",
        "_Z5blendPfi": "blend(float*, int)",
    }  # fmt: skip


def ptxas(registers: int, spilled: int) -> str:
    return (
        "ptxas info    : Compiling entry function 'blend' for 'sm_89'\n"
        "ptxas info    : Function properties for blend\n"
        f"    {spilled} bytes stack frame, {spilled} bytes spill stores, {spilled} bytes spill loads\n"
        f"ptxas info    : Used {registers} registers, 1024 bytes smem\n"
    )


def test_log_and_report_show_the_kernels_before_and_after(tmp_path: Path) -> None:
    made = repository(tmp_path / "trainer", train_py="", told_txt=ptxas(96, 0))
    (made / "told.txt").write_text(ptxas(40, 24))
    git(made, "commit", "-qam", "bounds")
    lab = make_lab(tmp_path / "lab", directory=str(made))
    shown = (
        "import os, sys; assert 'ptxas' in os.environ['NVCC_APPEND_FLAGS']; print(open('told.txt').read())"
    )
    baseline = lab.phases.get("baseline")
    build = ("python", "-c", shown)
    lab.phases.save(Phase(**{**_fields(baseline), "revision": "HEAD~1", "build": build}))
    add(lab, "bounds", revision="HEAD")
    plan, _ = carried_out(lab, "ab", ["baseline", "bounds"], trainer(0.002), blocks=4, prime=False)
    kept = plan.folder(lab) / "builds"
    assert "Used 40 registers" in (kept / "bounds.log").read_text()
    assert json.loads((kept / "baseline.json").read_text())["kernels"][0]["registers"] == 96
    shutil.rmtree(lab.worktrees)  # to save space: the evidence stays
    assert kernels_of(lab, "bounds")[0].spills
    text = write_log(document(lab))
    assert "`blend` for sm_89: registers 96, spill stores 0 B, shared memory 1024 B" in text
    assert (
        "`blend` for sm_89: registers 96 → 40, spill stores 0 → 24 B, spill loads 0 → 24 B, stack 0 → 24 B,"
        " shared memory 1024 B"
    ) in text
    assert audit_log(parse_log(text)) == []
    write_report(lab, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert 'id="kernels"' in page and "96 → 40" in page


def _fields(phase: Phase) -> dict[str, object]:
    return {name: getattr(phase, name) for name in Phase.__dataclass_fields__}


def test_a_failed_build_tells_its_complaint_and_keeps_its_log(tmp_path: Path) -> None:
    made = repository(tmp_path / "trainer", train_py="")
    lab = Lab(tmp_path / "lab")
    lab.root.mkdir()
    protocol = Protocol(trainer="mip-splatting", directory=str(made))
    script = "print('blend.cu(3): error: no such kernel'); print('2 errors'); raise SystemExit(7)"
    broken = Phase("baseline", build=("python", "-c", script))
    with pytest.raises(
        InputError, match=r"ended with 7: blend.cu\(3\): error: no such kernel.*build.failed.log"
    ):
        built(lab, [broken], protocol)
    (log,) = lab.worktrees.glob("*/build.failed.log")
    assert "2 errors" in log.read_text()
    with pytest.raises(MissingFile, match="no-such-compiler cannot be started"):
        built(lab, [Phase("baseline", build=("no-such-compiler",))], protocol)


def test_pip_and_python_of_a_build_are_the_phases_own(tmp_path: Path) -> None:
    made = repository(tmp_path / "trainer", train_py="")
    lab = Lab(tmp_path / "lab")
    lab.root.mkdir()
    protocol = Protocol(trainer="mip-splatting", directory=str(made))
    steps = build_words(
        ["WHO=me pip --version && python -c 'import sys; print(sys.prefix)' && sh -c 'python -V'"]
    )
    found = built(lab, [Phase("baseline", build=steps)], protocol)
    assert found.folder and found.python != sys.executable
    lines = (found.folder / "build.log").read_text().splitlines()
    assert lines[0] == "$ pip --version" and lines[1].startswith("pip ")
    assert str(found.folder / "environment") in lines


@pytest.mark.slow
def test_the_kernel_story_is_told_by_a_real_compiler(tmp_path: Path) -> None:
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc: the kernel story was not played")
    play = Path(__file__).parents[2] / "benchmarks" / "kernel_story" / "play.py"
    folder, log = tmp_path / "story", tmp_path / "LOG.md"
    subprocess.run([sys.executable, str(play), str(folder), "--blocks", "4", "--log", str(log)], check=True)
    lab = Lab(folder / "lab")
    before = {(k.name, k.architecture): k for k in kernels_of(lab, "baseline")}
    after = kernels_of(lab, "launch-bounds")
    assert len(before) == len(after) == 6 and not any(kernel.spills for kernel in before.values())
    bounded = [kernel for kernel in after if "blend_backward" in kernel.name]
    assert {kernel.architecture for kernel in bounded} == {"sm_80", "sm_89"}
    assert all(kernel.spills and kernel.registers and kernel.registers <= 42 for kernel in bounded)
    text = log.read_text()
    assert "`blend_backward` for sm_89: registers" in text and " → 40, spill stores 0 → " in text
    assert str(tmp_path) not in text and audit_log(parse_log(text)) == []
