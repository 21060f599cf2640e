"""Looks into what would be given away: `python packaging/check_archives.py dist/*.tar.gz dist/*.whl`.

A source archive must hold the repository's files and nothing else; a wheel those of src/splatmeter, one
extension and the licences; and what both say of themselves must be readable without the repository. Leaves
with 1 and a line for each thing that is wrong.
"""

from __future__ import annotations

import email.message
import email.parser
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = "src/splatmeter/"
IMAGES = "splatmeter/backends/cuda/images/"
LICENCES = ("LICENSE", "LICENSES/README.md", "LICENSES/nanobind.txt", "LICENSES/robin-map.txt")
EXPRESSION = "Apache-2.0 AND BSD-3-Clause AND MIT"
LARGEST_BYTES = 8_000_000
EXTENSIONS = ("_native", "_scenery")
_EXTENSION = re.compile(rf"splatmeter/({'|'.join(EXTENSIONS)})\.[\w.-]+\.so")
_RELATIVE = re.compile(r"\]\((?!https?://)[^)]*\)|<(?:img|a)\b", re.IGNORECASE)
_CODE = re.compile(r"^```.*?^```|`[^`]*`", re.MULTILINE | re.DOTALL)


def repository_files() -> set[str] | None:
    """None where git cannot tell: then contents are not compared, and that is said."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(REPOSITORY), "ls-files", "-z"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return set(filter(None, listed.stdout.split("\0"))) or None


def wrong_with(archive: Path, tracked: set[str] | None) -> Iterator[str]:
    if archive.stat().st_size > LARGEST_BYTES:
        yield f"it has {archive.stat().st_size / 1e6:.1f} MB, at most {LARGEST_BYTES / 1e6:.0f} are expected"
    if archive.name.endswith(".whl"):
        with zipfile.ZipFile(archive) as wheel:
            names = [name for name in wheel.namelist() if not name.endswith("/")]
            info = next((name for name in names if name.endswith(".dist-info/METADATA")), "")
            told = wheel.read(info).decode("utf-8") if info else ""
        yield from _wrong_in_a_wheel(names, info.removesuffix("METADATA"), tracked)
    else:
        with tarfile.open(archive) as source:
            root = archive.name.removesuffix(".tar.gz") + "/"
            names = [member.name for member in source.getmembers() if not member.isdir()]
            info = f"{root}PKG-INFO"
            file = source.extractfile(info) if info in names else None
            told = file.read().decode("utf-8") if file else ""
        yield from _wrong_in_a_source_archive(names, root, tracked)
    yield from _wrong_in_metadata(email.parser.Parser().parsestr(told))


def _wrong_in_a_source_archive(names: Sequence[str], root: str, tracked: set[str] | None) -> Iterator[str]:
    if tracked is not None:
        expected = {root + name for name in tracked} | {f"{root}PKG-INFO"}
        yield from (f"{name} is not of the repository" for name in sorted(set(names) - expected))
        yield from (f"{name} is missing" for name in sorted(expected - set(names)))


def _wrong_in_a_wheel(names: Sequence[str], info: str, tracked: set[str] | None) -> Iterator[str]:
    extensions = {name: found[1] for name in names if (found := _EXTENSION.fullmatch(name))}
    if sorted(extensions.values()) != sorted(EXTENSIONS):
        found = ", ".join(sorted(extensions)) or "none"
        yield f"its extensions are {found}, not one each of {' and '.join(EXTENSIONS)}"
    for licence in LICENCES:
        if f"{info}licenses/{licence}" not in names:
            yield f"the licence file {licence} is missing"
    if tracked is None:
        return
    expected = {name.removeprefix("src/") for name in tracked if name.startswith(PACKAGE)}
    found = {name for name in names if not name.startswith(info)} - set(extensions)
    cubins = {name for name in found if name.startswith(IMAGES) and name.endswith(".cubin")}
    # Where a cubin for the oldest cards is there, their PTX is left out.
    needless = {f"{IMAGES}compute_75.ptx"} if f"{IMAGES}sm_75.cubin" in cubins else set()
    yield from (f"{name} is not of the repository" for name in sorted(found - expected - cubins))
    yield from (f"{name} is missing" for name in sorted(expected - found - needless))


def _wrong_in_metadata(told: email.message.Message) -> Iterator[str]:
    if told.get("License-Expression") != EXPRESSION:
        yield f"its licence is {told.get('License-Expression')}, not {EXPRESSION}"
    if set(told.get_all("License-File", [])) != set(LICENCES):
        yield f"its licence files are {told.get_all('License-File')}"
    if told.get("Author") != "splatmeter developers":
        yield f"its author is {told.get('Author')}"
    page = str(told.get_payload())
    if told.get("Description-Content-Type", "").partition(";")[0] != "text/markdown" or len(page) < 1000:
        yield "it has no description in Markdown"
    for found in _RELATIVE.finditer(_CODE.sub("", page)):
        yield f"its description has {found.group(0)}, which leads nowhere on a package index"


def main(paths: Sequence[str]) -> int:
    if not paths:
        print("Name the archives to look into: check_archives.py dist/*", file=sys.stderr)
        return 64
    tracked = repository_files()
    if tracked is None:
        print("SKIPPED: git cannot list the repository's files here, so contents were not compared")
    wrong = 0
    for path in map(Path, paths):
        for sentence in wrong_with(path, tracked):
            print(f"{path.name}: {sentence}.", file=sys.stderr)
            wrong += 1
    print(f"{len(paths)} archives, {wrong} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
