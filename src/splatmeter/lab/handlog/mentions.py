"""What a number in a text is about: its key ('speed', 'training peak', 'test psnr' …) and its role."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from splatmeter.lab.handlog import word_lists
from splatmeter.lab.handlog.markdown import Text
from splatmeter.lab.handlog.named_cards import is_capacity
from splatmeter.lab.handlog.quantities import Quantity, quantities, with_unit, written_like

PEAKS = ("training peak", "evaluation peak", "reported peak")
METRIC_KEYS = tuple(word_lists.METRIC_NAMES)
MOST_MENTIONS = 400
"""The most figures in one paragraph; more is a dump of data."""


class Role(str, Enum):
    VALUE = "value"
    BEFORE = "before"
    """What it was, beside what it is."""
    CHANGE = "change"
    """Percent, factor or difference."""
    WISHED = "wished"
    """A target, a limit, an estimate."""
    SETTING = "setting"
    """Iterations, images, capacities: understood, and no result."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, a bullet or a cell with its heading."""

    text: Text
    context: str = ""
    """The label of the list it stands in."""

    @property
    def words(self) -> str:
        return self.text.words

    def line_at(self, position: int) -> int:
        return self.text.line_at(position)


@dataclass(frozen=True, slots=True)
class Mention:
    key: str
    role: Role
    quantity: Quantity
    line: int


_INSTEAD = re.compile(r"^\s*(?:instead of|statt|rather than|vs\.?|versus)\s*[~≈]?\s*$", re.IGNORECASE)
_NOW = re.compile(r"^\s*(?:now |nun )?(?:at|to|auf|bei)\s*$", re.IGNORECASE)
_WAS = re.compile(
    r"(?:\bwas|\bwar(?:en)?|\bstatt|\binstead of|\bbefore:?|\bvs\.?|\bversus|\bthan|\bgegenüber|"
    r"\bpreviously|\b(?:up|down) from|"
    r"\bcompared (?:to|with)|\bzuvor|\bvorher|\bfrom|\bals|\bagainst|\bnach)\s*(?:the |den |bisher |vorher "
    r")?[~≈(]?\s*$",
    re.IGNORECASE,
)
_BY = re.compile(
    r"(?:\bby|\bum|\bsav(?:es?|ed|ing)|\bspart|\bcosts?|\bkostet|\bloses?|\blost|\bverliert|\bgain(?:s|ed)|"
    r"\bfrees?)\s*(?:about |ca\. |only |nur |another |rund )?[~≈]?\s*$",
    re.IGNORECASE,
)
_DIFFERENT = re.compile(
    r"^\s*(?:less|more|fewer|lower|higher|worse|better|faster|slower|below|above|weniger|mehr|schlechter|"
    r"besser|niedriger|"
    r"höher|schneller|langsamer|saved|drop|reduction|loss|gain|off|shorter|longer|kürzer|länger|smaller|"
    r"larger|unter|über|(?:is|are|was|were|ist|sind|war) (?:gone|lost|weg|verloren))\b",
    re.IGNORECASE,
)
_IMAGES = re.compile(
    r"^\s*(?:\w+\s){0,2}(?:images?|photos?|views?|cameras?|pictures?|bilder\w*|fotos|ansichten)\b",
    re.IGNORECASE,
)
_RUNS = re.compile(
    r"^\s*(?:\w+\s)?(?:runs?|repeats?|repetitions?|seeds?|blocks?|läufen?|wiederholungen|tasks?|times|"
    r"passes|threads?|cores?)\b",
    re.IGNORECASE,
)
_POSITION = re.compile(
    r"(?:\b(?:line|lines|zeile|step|iter(?:ation)?|schritt|phase|driver|treiber|version|python|cuda|torch|"
    r"seed|#|every|alle|day|tag|week(?:end)?|degree|grad|versuch|experiment|pr|issue|rtx|gtx|rx|quadro|titan|geforce|nr\.?)[\s~#:]*)$",
    re.IGNORECASE,
)
_CAME_OF_IT = re.compile(
    r"\b(?:leaves?|left|gives?|gave|yields?|brings?|brought|makes?|made|ergibt|ergab|lässt|liefert\w*|bringt)\b",
    re.IGNORECASE,
)
_BARE_TIME = re.compile(
    r"^\W*(?:(?:a|one|the|whole|per|ein|run|training|lauf|wall|clock|time|zeit|dauer|in|min|total|gesamt)\W+)*$",
    re.IGNORECASE,
)
_LABEL_END = re.compile(r"[.;,]\s|\s/\s|\)(?!\s*:)|[|→]|->")
_RESOLUTION = re.compile(r"\d{3,5}\s?[x×]\s?\d{3,5}")


def mentions(passage: Passage) -> list[Mention]:
    """Every number of a passage in order."""
    text = passage.words
    found = quantities(text)[:MOST_MENTIONS]
    made: list[Mention] = []
    for position, quantity in enumerate(found):
        following = found[position + 1] if position + 1 < len(found) else None
        floor = found[position - 1].end if position else 0
        key = _key(quantity, passage, floor, following)
        if (
            not key
            and not quantity.unit
            and made
            and made[-1].quantity.unit == "dB"
            and _NOW.match(text[floor : quantity.start])
        ):
            key = made[-1].key  # 'better by 0.21 dB at 25.21'
        if not key and made and made[-1].quantity.unit == quantity.unit:
            led = word_lists.ARROW.match(text[floor : quantity.start])
            key = made[-1].key if led else ""  # 'Gaussians: 1.12 M → 0.79 M'
        quantity = _unit_of_heading(quantity, key, text)
        if following is not None and not key and word_lists.ARROW.match(text[quantity.end : following.start]):
            key = _key(following, passage, floor, None)  # 'from 1.80 to 1.26 million Gaussians'
        if (
            following is not None
            and not quantity.unit
            and _INSTEAD.match(text[quantity.end : following.start])
            and (shared := _key(following, passage, quantity.end, None))
        ):
            key, quantity = shared, written_like(quantity, following)  # '19.0 instead of 12.2 it/s'
        role = _role(quantity, key, text, following)
        if role is Role.BEFORE and following and not quantity.unit and following.unit:
            quantity = written_like(quantity, following)
        made.append(Mention(key, role, quantity, passage.line_at(quantity.start)))
    return made


def values(found: list[Mention], key: str) -> list[Mention]:
    return [mention for mention in found if mention.key == key and mention.role is Role.VALUE]


def key_of_words(text: str, split: str = "test", stage: str = "") -> str:
    """The key that words alone name: a label, a heading, the subject of a claim."""
    for metric, pattern in word_lists.METRIC_NAMES.items():
        if re.search(pattern, text, re.IGNORECASE):
            return f"{_split(text, split)} {metric}"
    if word_lists.GAUSSIANS.search(text):
        return "gaussians"
    if word_lists.SPEED.search(text) or word_lists.FASTER.search(text) or word_lists.SLOWER.search(text):
        return "speed"
    if word_lists.MEMORY.search(text):
        return memory_key(text, stage)
    if word_lists.LOSS.search(text):
        return "loss"
    if word_lists.OPACITY.search(text):
        return "opacity"
    return "time" if word_lists.TIME.search(text) else ""


def memory_key(before: str, after: str = "", context: str = "") -> str:
    for text in (before, after, context):
        evaluation, training = (
            word_lists.last_match(word_lists.EVALUATION, text),
            word_lists.last_match(word_lists.TRAINING, text),
        )
        if max(evaluation, training) >= 0:
            return "evaluation peak" if evaluation > training else "training peak"
    return "reported peak"


def _split(text: str, usual: str) -> str:
    if re.search(r"\btest|\bheld[- ]out", text, re.IGNORECASE):
        return "test"
    return "train" if re.search(r"\btrain(?:ing)?\b", text, re.IGNORECASE) else usual


def _key(quantity: Quantity, passage: Passage, floor: int, following: Quantity | None) -> str:
    text = passage.words
    sentence = word_lists.tail(text[max(0, quantity.start - 160) : quantity.start], word_lists.SENTENCE_END)
    after = word_lists.head(text[quantity.end : quantity.end + 40], word_lists.CLAUSE_END)
    near = text[max(floor, quantity.start - 40) : quantity.start]
    split = "train" if re.search(r"\btrain", passage.context, re.IGNORECASE) else "test"
    match quantity.unit:
        case "it/s" | "s/it":
            return "speed"
        case "dB":
            return f"{_split(sentence, split)} psnr"
        case "s":
            timed = (
                word_lists.TIME.search(text)
                or word_lists.ITERATIONS.search(text)
                or re.search(r"\bin\s$", near)
            )
            named = re.search(r"\b(?:run|lauf)\W*$", near, re.IGNORECASE)
            return "time" if timed or named or stands_alone(text, quantity) else ""
        case "B":
            clause = word_lists.tail(sentence, word_lists.CLAUSE_END) + after
            if word_lists.NOT_THE_CARD.search(clause) or re.search(
                r"\bshared\b|\bdisk\b", passage.context, re.IGNORECASE
            ):
                return ""
            return memory_key(sentence, after, passage.context)
        case "%" | "x":
            return ""
        case _:
            return _key_of_bare(quantity, near, after, split, sentence)


def stands_alone(text: str, time: Quantity) -> bool:
    """'31.0 it/s, +17.9 %, 8 min 04 s': a time to the second beside a speed, without a word of its own."""
    before = word_lists.tail(text[max(0, time.start - 60) : time.start], word_lists.CLAUSE_END)
    after = word_lists.head(text[time.end : time.end + 30], word_lists.CLAUSE_END)
    sentence = word_lists.tail(text[: time.start], word_lists.SENTENCE_END)
    beside = re.search(f"{word_lists.PER_SECOND}|{word_lists.PER_STEP}", sentence, re.IGNORECASE)
    return time.half < 1 and bool(beside) and bool(_BARE_TIME.match(f"{before} {after} "))


def _key_of_bare(quantity: Quantity, near: str, after: str, split: str, sentence: str) -> str:
    if re.match(r"^\s?(?:\w+\s)?" + f"(?:{word_lists.GAUSSIANS.pattern})", after, re.IGNORECASE):
        return "gaussians"
    if re.match(r"^\s?(?:\w+\s)?" + f"(?:{word_lists.ITERATIONS.pattern})", after, re.IGNORECASE):
        return "iterations"
    label = word_lists.tail(near, _LABEL_END)
    if re.search(f"{word_lists.PER_SECOND}|{word_lists.PER_STEP}", label, re.IGNORECASE):
        return "speed"
    if re.search(rf"(?:{word_lists.ITERATIONS.pattern})[\w ]{{0,14}}[:=]\s*$", label, re.IGNORECASE):
        return "iterations"
    if _POSITION.search(label):
        return ""
    for metric, pattern in word_lists.METRIC_NAMES.items():
        if re.search(pattern, label, re.IGNORECASE):
            return f"{_split(label, split)} {metric}"
    if re.search(r"\b[MG]i?B\b", label) and word_lists.MEMORY.search(label):
        return memory_key(label)
    if word_lists.GAUSSIANS.search(label):
        return "gaussians"
    if word_lists.LOSS.search(label):
        return "loss"
    if word_lists.OPACITY.search(label):
        return "opacity"
    if (
        quantity.text.lower().endswith("k")
        and quantity.value >= 1000
        and re.match(r"^\s*(?:in|took|takes)\b", after)
    ):
        return "iterations"
    return ""


def _unit_of_heading(quantity: Quantity, key: str, text: str) -> Quantity:
    """'peak MiB: 6,820' and 'ms/it: 31.2': the heading has the unit."""
    if key.endswith("psnr") and not quantity.unit:
        return with_unit(quantity, "dB")
    if quantity.unit or key not in ("speed", *PEAKS):
        return quantity
    label = text[max(0, quantity.start - 40) : quantity.start]
    written = re.findall(rf"{word_lists.PER_SECOND}|{word_lists.PER_STEP}|\b[MG]i?B\b", label, re.IGNORECASE)
    return with_unit(quantity, written[-1].replace(".", "")) if written else quantity


def _is_wished(clause: str) -> bool:
    """'a stricter threshold leaves 2.2 million' tells what came of it."""
    spoken = word_lists.last_match(word_lists.NOT_MEASURED, clause)
    return spoken >= 0 and not _CAME_OF_IT.search(clause[spoken:])


def _role(quantity: Quantity, key: str, text: str, following: Quantity | None) -> Role:
    before, after = text[max(0, quantity.start - 60) : quantity.start], text[quantity.end : quantity.end + 40]
    clause = word_lists.tail(before, word_lists.CLAUSE_END).rstrip()
    if quantity.unit in ("%", "x"):
        around = _RESOLUTION.search(text[max(0, quantity.start - 6) : quantity.end + 6])
        return Role.SETTING if around or _RUNS.match(after) else Role.CHANGE
    if quantity.unit == "B" and is_capacity(text, quantity.start, quantity.end):
        return Role.SETTING
    if key == "iterations" or (
        not quantity.unit and not key and (_IMAGES.match(after) or _RUNS.match(after))
    ):
        return Role.SETTING
    if not key:
        return Role.SETTING if _POSITION.search(before) or quantity.unit else Role.UNKNOWN
    if (
        _BY.search(before)
        or (quantity.signed and (quantity.unit or "(" in before))
        or (quantity.unit and _DIFFERENT.match(after))
    ):
        return Role.CHANGE
    if (
        following
        and following.unit in (quantity.unit, "B", "dB", "it/s", "")
        and word_lists.ARROW.match(text[quantity.end : following.start])
    ):
        return Role.BEFORE
    if _is_wished(clause) or word_lists.NOT_MEASURED.search(
        word_lists.head(after, word_lists.CLAUSE_END)[:14]
    ):
        return Role.WISHED
    if word_lists.last_match(word_lists.SAME, before) > len(before) - 14:
        return Role.VALUE  # 'wie zuvor 27.11 dB'
    return Role.BEFORE if _WAS.search(before) else Role.VALUE
