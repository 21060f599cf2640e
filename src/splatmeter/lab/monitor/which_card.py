"""Which of several cards a command will use, by the rules of CUDA."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from splatmeter.lab.monitor.nvml import Card, Cards

_ORDINAL = re.compile(r"(?:.*=)?cuda:(\d+)")


@dataclass(frozen=True, slots=True)
class Choice:
    card: Card | None
    because: str
    certain: bool = True


def which_card(cards: Cards, variables: Mapping[str, str], words: Sequence[str] = ()) -> Choice:
    """`variables` are those of the command, `words` its arguments: `cuda:1` is the second card it sees."""
    if not cards.found:
        return Choice(None, cards.reason)
    ordinal = next((int(found[1]) for word in words if (found := _ORDINAL.fullmatch(word))), 0)
    visible = variables.get("CUDA_VISIBLE_DEVICES")
    order = variables.get("CUDA_DEVICE_ORDER", "")
    if visible is None:
        return _of_all(cards, ordinal, order)
    named = visible_cards(cards, visible)
    said = f"CUDA_VISIBLE_DEVICES={visible}"
    if ordinal >= len(named):
        return Choice(
            None, f"{said} shows the command no card" if not named else f"{said} has no cuda:{ordinal}"
        )
    by_number = visible.split(",")[ordinal].strip().isdigit()
    certain = not by_number or len(cards.found) == 1 or order == "PCI_BUS_ID" or _alike(cards)
    return Choice(named[ordinal], said if certain else f"{said}, if CUDA counts as the driver does", certain)


def visible_cards(cards: Cards, stated: str) -> list[Card]:
    """In the order that the command sees; as for CUDA, everything after a name that fits nothing is gone."""
    found: list[Card] = []
    for entry in stated.split(","):
        name = entry.strip()
        if name.isdigit():
            card = next((card for card in cards.found if card.index == int(name)), None)
        else:
            card = cards.by_uuid(name) if name.startswith(("GPU-", "MIG-")) else None
        if card is None or any(card.uuid == other.uuid and card.uuid for other in found):
            break
        found.append(card)
    return found


def _of_all(cards: Cards, ordinal: int, order: str) -> Choice:
    if ordinal >= len(cards.found):
        return Choice(None, f"there is no cuda:{ordinal}")
    card = cards.found[ordinal]
    if len(cards.found) == 1:
        return Choice(card, "the only card")
    if order == "PCI_BUS_ID":
        return Choice(card, f"number {ordinal} in the order of the bus")
    return Choice(
        card, f"number {ordinal} of {len(cards.found)}, if CUDA counts as the driver does", _alike(cards)
    )


def _alike(cards: Cards) -> bool:
    """CUDA puts the fastest card first unless told otherwise; among equal ones the order is the bus's."""
    return len({card.name for card in cards.found}) == 1
