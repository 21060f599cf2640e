"""How a phase's worktree is built: what a person types, and the commands that it means."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from splatmeter.errors import UsageError

AND_THEN = "&&"
_OF_A_SHELL = {"|", "||", ";", "&", "<", ">", ">>", "2>", "2>&1"}
_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BuildStep:
    """One command, and the variables that stand before it as in a shell."""

    arguments: tuple[str, ...]
    variables: Mapping[str, str]


def build_words(stated: Sequence[str]) -> tuple[str, ...]:
    """A single text is cut as a shell would cut it; several words are taken as they are."""
    words = list(stated)
    if len(words) == 1:
        try:
            words = shlex.split(words[0])
        except ValueError as problem:
            raise UsageError(f"--build {stated[0]!r} cannot be read: {str(problem).lower()}.") from None
    for word in words:
        if word in _OF_A_SHELL:
            raise UsageError(
                f"--build runs commands without a shell, so {word!r} means nothing there; only '&&' does."
                " Put them into a script, or write: --build \"sh -c '...'\"."
            )
    build_steps(words)
    return tuple(words)


def build_steps(words: Sequence[str]) -> list[BuildStep]:
    """Cut at '&&'; NAME=VALUE before a command is a variable of that command."""
    steps: list[BuildStep] = []
    for command in _cut(words):
        variables: dict[str, str] = {}
        rest = list(command)
        while rest and (found := _VARIABLE.fullmatch(rest[0])):
            variables[found[1]] = found[2]
            rest.pop(0)
        if not rest:
            raise UsageError(
                f"--build {' '.join(words)!r} lacks a command; write for example 'pip install .'."
            )
        steps.append(BuildStep(tuple(rest), variables))
    return steps


def _cut(words: Sequence[str]) -> list[list[str]]:
    commands: list[list[str]] = [[]]
    for word in words:
        if word == AND_THEN:
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


def words_after_build(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The lab's own words, and what stands after a bare `--`: trainer options or a command.

    `--build -- cmake --build build` is a build whose words may look like anything; a second `--` ends it.
    """
    words = list(arguments)
    if "--" not in words:
        return words, []
    cut = words.index("--")
    own, rest = words[:cut], words[cut + 1 :]
    if own[-1:] != ["--build"]:
        return own, rest
    end = rest.index("--") if "--" in rest else len(rest)
    return [*own[:-1], f"--build={shlex.join(rest[:end])}"], rest[end + 1 :]
