"""Cards by name and what they hold, so that a peak beyond it is noticed."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MEMORY = {
    "rtx 5090": (32,), "rtx 5080": (16,), "rtx 5070 ti": (16,), "rtx 5070": (12,), "rtx 5060 ti": (8, 16),
    "rtx 5060": (8,),
    "rtx 5050": (8,), "rtx 4090": (24,), "rtx 4080": (16, 12), "rtx 4080 super": (16,), "rtx 4070 ti": (12,),
    "rtx 4070 ti super": (16,), "rtx 4070 super": (12,), "rtx 4070": (12,), "rtx 4060 ti": (8, 16),
    "rtx 4060": (8,),
    "rtx 3090": (24,), "rtx 3090 ti": (24,), "rtx 3080 ti": (12,), "rtx 3080": (10, 12), "rtx 3070": (8,),
    "rtx 3070 ti": (8,),
    "rtx 3060": (12, 8), "rtx 3060 ti": (8,), "rtx 3050": (8, 6), "rtx 2080 ti": (11,), "rtx 2080": (8,),
    "rtx 2080 super": (8,),
    "rtx 2070": (8,), "rtx 2070 super": (8,), "rtx 2060": (6, 12), "gtx 1080 ti": (11,), "gtx 1080": (8,),
    "gtx 1070": (8,),
    "gtx 1060": (6, 3), "gtx 1660": (6,), "titan rtx": (24,), "titan v": (12,), "titan xp": (12,),
    "rtx a6000": (48,), "a6000": (48,), "rtx a5000": (24,), "a5000": (24,), "rtx a4000": (16,),
    "a4000": (16,), "rtx a4500": (20,),
    "rtx a2000": (12, 6), "rtx 6000 ada": (48,), "rtx 5000 ada": (32,), "rtx 4000 ada": (20,),
    "rtx pro 6000": (96,),
    "quadro rtx 8000": (48,), "quadro rtx 6000": (24,), "a100": (80, 40), "h100": (80, 94, 96),
    "h200": (141,), "b200": (192, 180),
    "gh200": (96, 144), "v100": (32, 16), "p100": (16, 12), "t4": (16,), "l4": (24,), "l40": (48,),
    "l40s": (48,), "a10": (24,),
    "a10g": (24,), "a30": (24,), "a40": (48,), "a16": (16,), "k80": (24, 12), "p40": (24,),
    "rx 7900 xtx": (24,), "rx 7900 xt": (20,),
    "rx 6900 xt": (16,), "rx 6800 xt": (16,), "rx 9070 xt": (16,), "mi210": (64,), "mi250": (128,),
    "mi300x": (192,),
    "arc a770": (16, 8), "arc b580": (12,),
}  # fmt: skip
"""GB as sold; of several sizes the largest decides, unless the log says which."""
_SPOKEN = sorted(_MEMORY, key=len, reverse=True)
_NAME = re.compile(
    r"(?:(?P<number>[2-9])\s?[x×]\s?)?(?<![\w-])(?P<card>"
    + "|".join(re.escape(name).replace(r"\ ", r"[\s-]?") for name in _SPOKEN)
    + r")(?![\w])(?P<laptop>\s?(?:laptop|mobile|max-q|notebook))?",
    re.IGNORECASE,
)
_SIZE_AFTER = re.compile(
    r"^\W{0,3}(?:with |mit |has |hat |PCIe |SXM\d? |GPU |card )?\W?(\d{1,3})[\s-]?G(?:i?B)?\b", re.IGNORECASE
)
_SIZE_BEFORE = re.compile(r"(?<![\d.])(\d{1,3})\s?G(?:i?B)?\s+(?:NVIDIA\s+|GeForce\s+)?$", re.IGNORECASE)
_SIZED_CARD = re.compile(
    r"(?<![\d.])(\d{1,3})[\s-]?G(?:i?B)?[\s-](?:of VRAM|VRAM|GPU|card|karte|grafikkarte|GDDR\dX?|HBM\w*)\b",
    re.IGNORECASE,
)
_PORTABLE = re.compile(r"\b(?:laptop|mobile|notebook|max-q)\b", re.IGNORECASE)
GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class NamedCard:
    name: str
    bytes: float
    said: int | None
    """GB that the log gives it."""
    sold: tuple[int, ...]
    line: int
    laptop: bool = False

    @property
    def impossible(self) -> bool:
        """The log gives it a size in which it is not sold."""
        return bool(self.said and self.sold and self.said not in self.sold and not self.laptop)


def cards_in(text: str, line: int) -> list[NamedCard]:
    found: list[NamedCard] = []
    for match in _NAME.finditer(text):
        key = re.sub(r"(?<=[a-z])(?=\d)", " ", re.sub(r"[\s-]+", " ", match["card"].lower()))
        sold = _MEMORY.get(key) or _MEMORY.get(key.replace(" ", "")) or ()
        after, before = (
            _SIZE_AFTER.match(text[match.end() : match.end() + 24]),
            _SIZE_BEFORE.search(text[: match.start()][-24:]),
        )
        said = int(after[1]) if after else int(before[1]) if before else None
        count = int(match["number"] or 1)
        laptop = bool(match["laptop"] or _PORTABLE.search(text[max(0, match.start() - 60) : match.start()]))
        if sold or said:
            # "24 GB" of a card are GiB, so the most generous reading of a peak still has to fit.
            size = GIB * count * (said if said and (not sold or said in sold or laptop) else max(sold))
            found.append(NamedCard(match["card"], size, said, sold, line, laptop))
    if not found:
        found = [NamedCard("card", GIB * int(m[1]), int(m[1]), (), line) for m in _SIZED_CARD.finditer(text)]
    return found


def is_capacity(text: str, start: int, end: int) -> bool:
    """Whether the gigabytes at this place are those of a card, not those of a run."""
    near = text[max(0, start - 40) : start]
    named = list(_NAME.finditer(near))
    if named and re.fullmatch(
        r"\W{0,3}(?:with |mit |has |hat |PCIe |SXM\d? |GPU |card |von )*\W?",
        near[named[-1].end() :],
        re.IGNORECASE,
    ):
        return True
    return bool(
        re.match(
            r"[\s-]?(?:of VRAM|VRAM\s+card|GPU|card|karte|grafikkarte|GDDR|HBM)|\s?\W?\s?(?:"
            + _NAME.pattern
            + ")",
            text[end : end + 40],
            re.IGNORECASE,
        )
    ) or bool(re.search(r"\d\s?(?:G(?:i?B)?)?\s*(?:/|\bof|\bvon)\s*$", near))
