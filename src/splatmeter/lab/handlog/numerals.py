"""Numbers as other people write them: 54,10 and 7.000, or 54.10 and 7,000; the whole document decides."""

from __future__ import annotations

import re

_COMMA_DECIMAL = re.compile(
    r"(?<![\d.,])\d{1,4},(?:\d{1,2}|\d{4,6})(?!\d|,\d)(?!\.\d)|(?<![\d.,])0,\d{3}(?!\d)"
)
_POINT_DECIMAL = re.compile(r"(?<![\d.,])\d{1,4}\.(?:\d{1,2}|\d{4,6})(?![\d.])|(?<![\d.,])0\.\d{3}(?!\d)")
_POINT_THOUSANDS = re.compile(r"(?<![\d.,])([1-9]\d{0,2})((?:\.\d{3})+)(?![\d.]*\d)")
_ANY_COMMA_DECIMAL = re.compile(r"(?<![\d.,])(\d{1,6}),(\d{1,6})(?!\d|,\d|\.\d)")
_WITH_UNIT = re.compile(
    r"(?<![\d.,])(\d{1,6}),(\d{1,2})(?=\s?(?:it/s|s/it|ms|GB|GiB|MB|MiB|dB|%|s\b|min\b|h\b))"
)
_LEADING_ZERO = re.compile(r"(?<![\d.,])0,(\d{3,6})(?!\d|,\d)")
_SPACED = re.compile(r"(?<![\d.,])([1-9]\d{0,2})((?:[\u00a0\u202f\u2009']\d{3})+)(?!\d)")
_PLAIN_SPACED = re.compile(
    r"(?<![\d.,])(?<!phase )(?<!step )(?<!run )(?<!schritt )(?<!version )(?<!# )([1-9]\d{0,2})((?: "
    r"\d{3}){1,3})(?=\s?(?:[MK]i?B\b|it(?:er)?s?\b|iteration|"
    r"Iteration|steps?\b|Schritte|[Gg]au(?:ss|ß)|splats?\b))",
    re.IGNORECASE,
)

GENERATED = "*Written by `splatmeter lab log`"


def has_decimal_commas(text: str) -> bool:
    """Whether the author writes 54,10: more such numbers than 54.10. We ourselves never do."""
    head = text[:200_000]
    if GENERATED in head:
        return False
    return len(_COMMA_DECIMAL.findall(head)) > len(_POINT_DECIMAL.findall(head))


def english(text: str, decimal_commas: bool) -> str:
    """The same text with 54.10 and 7000 for whatever stood there."""
    text = _PLAIN_SPACED.sub(_joined, _SPACED.sub(_joined, text))
    if not decimal_commas:
        return spread(_LEADING_ZERO.sub(r"0.\1", _WITH_UNIT.sub(r"\1.\2", text)))
    return spread(_ANY_COMMA_DECIMAL.sub(r"\1.\2", _POINT_THOUSANDS.sub(_joined, text)))


def _joined(found: re.Match[str]) -> str:
    return found[1] + re.sub(r"\D", "", found[2])


_LISTED = re.compile(
    r"\b((?:PSNR|SSIM|LPIPS|L1)(?:\s?/\s?(?:PSNR|SSIM|LPIPS|"
    r"L1)){1,3})\b[^\d/|]{0,6}((?:\d[\d.,]*)(?:\s?(?:dB)?\s?/\s?\d[\d.,]*){1,3})",
    re.IGNORECASE,
)


def spread(text: str) -> str:
    """'PSNR/SSIM = 26.9 / 0.84' as 'PSNR 26.9, SSIM 0.84'."""

    def written(found: re.Match[str]) -> str:
        names, figures = re.split(r"\s?/\s?", found[1]), re.split(r"\s?(?:dB)?\s?/\s?", found[2])
        if len(names) != len(figures):
            return found.group()
        return ", ".join(f"{name} {figure}" for name, figure in zip(names, figures, strict=True))

    return _LISTED.sub(written, text)
