"""Why a command line does not fit a dataclass, in one sentence made from the dataclass's own fields."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatmeter.cli.nearest import is_option, suggestion, unknown_option

_WANTED = {int: "a whole number", float: "a number", Path: "a path", str: "a text"}
_SEVERAL = {int: "whole numbers", float: "numbers", Path: "paths", str: "texts"}


@dataclass(frozen=True, slots=True)
class Field:
    """One setting, as the command line spells it."""

    name: str
    positional: bool
    required: bool
    kind: type
    """The type of one value; bool means a switch, which takes none."""
    choices: tuple[str, ...] = ()
    many: bool = False
    optional: bool = False
    shown: str = ""
    """What help calls a positional argument."""

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def spellings(self) -> set[str]:
        if self.positional:
            return set()
        return {self.option, "--no-" + self.option[2:]} if self.kind is bool else {self.option}

    @property
    def wanted(self) -> str:
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        return (_SEVERAL if self.many else _WANTED).get(self.kind, "a value")

    def takes(self, word: str) -> bool:
        if self.choices:
            return word in self.choices or (self.optional and word == "None")
        if self.kind not in (int, float) or (self.optional and word == "None"):
            return True
        try:
            self.kind(word)
        except ValueError:
            return False
        return True


def fields_of(cls: Any) -> list[Field]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return [_field(field, hints[field.name]) for field in dataclasses.fields(cls) if field.init]


def _field(field: dataclasses.Field[Any], hint: Any) -> Field:
    required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    positional = optional = many = False
    shown = field.name.upper().replace("_", "-")
    while typing.get_origin(hint) is typing.Annotated:
        positional |= any("Positional" in repr(mark) for mark in hint.__metadata__)
        shown = next((mark.metavar for mark in hint.__metadata__ if getattr(mark, "metavar", None)), shown)
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        optional = True
        (hint,) = (one for one in typing.get_args(hint) if one is not types.NoneType)
    if typing.get_origin(hint) is tuple:
        many, hint = True, typing.get_args(hint)[0]
    choices = typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()
    kind = str if choices else hint
    return Field(field.name, positional, required, kind, tuple(map(str, choices)), many, optional, shown)


def spelled_options(cls: Any) -> set[str]:
    """As they are spelled on the command line."""
    return {"--help", "-h"}.union(*(field.spellings for field in fields_of(cls)))


def complaint(cls: Any, words: Sequence[str], others: Collection[str]) -> str:
    """The first thing that is wrong; `others` are spellings that were replaced before, for suggestions."""
    fields = fields_of(cls)
    known = {spelling: field for field in fields for spelling in field.spellings}
    unknown = unknown_option(words, {*spelled_options(cls), *others})
    if unknown:
        return unknown
    given: set[str] = set()
    bare: list[str] = []
    rest = list(words)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        field = known.get(name)
        if field is None:
            bare.append(name + equals + value)
            continue
        given.add(field.name)
        values = [value] if equals else []
        while rest and not equals and field.kind is not bool and not is_option(rest[0]):
            if values and not field.many:
                break
            values.append(rest.pop(0))
        if wrong := _wrong_values(field, name, values):
            return wrong
    return _wrong_arguments(fields, bare, given) or "These arguments cannot be understood."


def _wrong_values(field: Field, name: str, values: Sequence[str]) -> str:
    if field.kind is bool:
        return f"{name} is a switch and takes no value, but was given {values[0][:60]!r}." if values else ""
    if not values and not field.many:
        return f"{name} needs a value: {field.wanted}."
    for value in values:
        if not field.takes(value):
            return f"{name} takes {field.wanted}, not {value[:60]!r}.{suggestion(value, field.choices)}"
    return ""


def _wrong_arguments(fields: Sequence[Field], bare: Sequence[str], given: Collection[str]) -> str:
    """What stands without an option, and what is not there at all."""
    places = [field for field in fields if field.positional]
    several = any(field.many for field in places)
    if len(bare) > len(places) and not several:
        return f"{bare[len(places)][:60]!r} is one argument too many."
    for number, field in enumerate(places):
        if field.required and number >= len(bare):
            return f"The argument {field.shown} is missing: {field.wanted}."
    for field in fields:
        if field.required and not field.positional and field.name not in given:
            return f"The option {field.option} is required: {field.wanted}."
    return ""
