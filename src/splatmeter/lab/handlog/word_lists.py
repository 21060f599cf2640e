"""The vocabulary of logs, English and German: what figures are called and what is said about them."""

from __future__ import annotations

import re


def _any(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


PER_SECOND = (
    r"(?<![-\w])(?:its?|iters?|iterations?|iterationen|steps?|schritte?n?)\s?(?:/|per|pro|\sa|each)\s?(?:s|sec|sek|"
    r"second|sekunde)\b"
)
PER_STEP = (
    r"\b(?:m?s|secs?|sek|seconds?|sekunden)\.?\s?(?:/|per|pro|je)\s?(?:its?|iter|iterations?|step|schritt)\b"
)
SPEED = _any(
    r"\bspeed(?!-?\s?up)", r"\bthroughput", r"\btempo\b", r"geschwindigkeit", r"durchsatz",
    r"\b(?:step|iteration|frame) rate\b",
    PER_SECOND, PER_STEP,
)  # fmt: skip
FASTER = _any(
    r"\bfaster\b", r"\bquicker\b", r"\bschneller\b", r"\bspeed-?\s?up\b", r"\bspe?eds? up\b", r"\bbeschleunig"
)
SLOWER = _any(r"\bslower\b", r"\blangsamer\b", r"\bslow-?\s?down\b", r"\bslows\b")
MEMORY = _any(
    r"\bpeaks?\b",
    r"\bv?ram\b",
    r"\bmemory\b",
    r"\bmem\b",
    r"\w*speicher\w*\b",
    r"\ballocat(?:ed|ion)\b",
    r"\bbelegt\w*",
    r"\bspitzen?\b",
    r"\bfootprint",
)
NOT_THE_CARD = _any(
    r"\bshared\b", r"\bdisk\b", r"\bfiles?\b", r"\bply\b", r"\bcheckpoints?\b", r"\bhost\b",
    r"\bdata ?sets?\b",
    r"\bswap", r"\bpage ?file", r"\bdatei", r"\bfestplatte", r"\bsystem\b", r"\bcpu\b", r"\barbeitsspeicher",
    r"\bdownload", r"\barchive?\b", r"\bspill", r"\bmodel size\b", r"(?<!v)\bram\b", r"\bbandwidth\b",
    r"\bcache\b",
)  # fmt: skip
EVALUATION = _any(
    r"(?<!-)\beval(?:uation|uating)?\b",
    r"\bauswertung",
    r"\bvalidation\b",
    r"\binference\b",
    r"\bevaluierung",
)
TRAINING = _any(r"\btrain(?:ing|s)?\b", r"\btrainings?\w*\b")
GAUSSIANS = _any(
    r"\bgaussians?\b(?!-)", r"\bsplats?\b", r"\bgau(?:ß|ss)(?!ian)\w*", r"\bprimitives\b", r"#g\b"
)
ITERATIONS = _any(
    r"\biterations?\b",
    r"\biterationen\b",
    r"\biters?\b",
    r"\bits\b",
    r"\bsteps?\b",
    r"\b(?:trainings)?schritten?\b",
)
TIME = _any(
    r"\btime\b", r"\btakes?\b", r"\btook\b", r"\bduration\b", r"\bwall\b", r"\b\w*dauer\w*", r"\blaufzeit",
    r"\bzeit\b", r"\bminutes?\b", r"\bbraucht\b", r"\belapsed\b", r"\bfinish",
)  # fmt: skip
QUALITY = _any(
    r"\bquality\b", r"\bqualit(?:ä|ae)t\w*", r"\bimage metrics\b", r"\bmetrics\b", r"\bbildqualität"
)
METRIC_NAMES = {"psnr": r"\bpsnr\b", "ssim": r"\bssim\b", "lpips": r"\blpips\b", "l1": r"\bl1\b"}
LOSS = _any(r"(?<!quality )\bloss\b(?! of quality)", r"\bverlustwert\b")
OPACITY = _any(r"\bopacity\b", r"\bdeckkraft\b")

UP = _any(
    r"\bros(?:e|en)\b", r"\bris(?:es|ing)\b", r"\bincreas", r"\bclimb", r"\bgr[eo]w", r"\bhigher\b",
    r"\bgained\b",
    r"\bwent up\b", r"\bsteigt\b", r"\bstieg", r"\bgestiegen\b", r"\bhöher\b", r"\berhöht", r"\bgewachsen\b",
    r"\bjump",
    r"\bwächst\b",
)  # fmt: skip
DOWN = _any(
    r"\bf[ae]lls?\b", r"\bfallen\b", r"\bdrop", r"\bdecreas", r"\breduc", r"\bshr[iau]nk",
    r"\blower(?:ed)?\b",
    r"\bwent down\b", r"\bsink", r"\bsank\b", r"\bgesunken\b", r"\bfällt\b", r"\bfiel\b", r"\bgefallen\b",
    r"\bsaves?\b", r"\bsaving", r"\bspart\b", r"\bless\b", r"\bfewer\b", r"\bweniger\b", r"\bbelow\b",
    r"\bsmaller\b",
    r"\bniedriger\b", r"\bkleiner\b", r"\bshorter\b", r"\bkürzer\b", r"\bdown\b", r"\bgeringer\b", r"\bcut\b",
)  # fmt: skip
MORE = _any(
    r"\bmore\b",
    r"\bmehr\b",
    r"\bhigher\b",
    r"\babove\b",
    r"\blarger\b",
    r"\bbigger\b",
    r"\blonger\b",
    r"\bgrößer\b",
)
WORSE = _any(
    r"\bworse\b",
    r"\bschlechter\b",
    r"\bloses?\b",
    r"\blost\b",
    r"\bcosts?\b",
    r"\bkostet\b",
    r"\bverliert\b",
    r"\bdegrad",
)
BETTER = _any(r"\bbetter\b", r"\bbesser\b", r"\bimprov", r"\bverbesser", r"\bgains?\b", r"\bgewinnt\b")
SAME = _any(
    r"\bunchanged\b", r"\bsame\b", r"\bidentical\b", r"\bequal to\b", r"\bno change\b", r"\bunverändert\w*",
    r"\bunveraendert\w*", r"\bgleich(?:\b(?!zeitig)|bleibend)", r"\bgleichgeblieben\b", r"\bidentisch\b",
    r"\bwie (?:zuvor|vorher|bisher)\b",
    r"\bstay(?:s|ed)\b", r"\bremain(?:s|ed)\b", r"\bbleibt\b", r"\bblieb\b", r"\bas before\b",
    r"\bconstant\b", r"\bkonstant\b",
    r"\bholds? at\b", r"\bdid(?: not|n.t) (?:change|move|budge)\b", r"\bleft alone\b",
    r"\b(?:peak|memory|vram|speed|psnr|ssim|lpips) (?:is )?still\b(?= (?:at )?\d)", r"\bweiterhin\b",
)  # fmt: skip
NEGATED = _any(
    r"\bnot\b",
    r"\bno longer\b",
    r"\bnicht\b",
    r"n't\b",
    r"\bkein\w*\b",
    r"\bhardly\b",
    r"\balmost\b",
    r"\bnearly\b",
    r"\bfast\b",
    r"\broughly\b",
)
REFERENCE = _any(
    r"\bfrom\b", r"\bvs\b\.?", r"\bversus\b", r"\bthan\b", r"\bagainst\b", r"\bover\b",
    r"\bcompared (?:to|with)\b",
    r"\brelative to\b", r"\bgegenüber\b", r"\bgegenueber\b", r"\bals\b", r"\bgegen\b",
    r"\bim vergleich (?:zu|mit)\b",
    r"\bbelow\b", r"\babove\b", r"\bunter\b", r"\bon\b", r"\bsame as\b", r"\bequal to\b",
    r"\bidentical to\b", r"\bas\b", r"\bwie\b",
    r"\bwrt\b\.?", r"\bseit\b", r"\bsince\b", r"\bto\b",
)  # fmt: skip
PREVIOUS = _any(
    r"\bprevious\b", r"\bbefore\b", r"\bprior\b", r"\bpredecessor\b", r"\bzuvor\b", r"\bvorher\w*",
    r"\bvorgänger\w*",
    r"\bdavor\b", r"\blast (?:phase|step|run|version|entry)\b", r"\bprev\b", r"\byesterday\b",
    r"\bgestern\b", r"\bparent\b",
)  # fmt: skip
FIRST = _any(
    r"\bbaseline\b", r"\bbase\b", r"\breference\b", r"\bthe start\b", r"\bstarting point\b", r"\boriginal\b",
    r"\bausgangs\w+",
    r"\bgrundlinie\b", r"\bbasis\b", r"\bbeginn\b", r"\banfang\b", r"\bstock\b", r"\bupstream\b",
    r"\binitial\b", r"\b(?:I|we|it) (?:all )?(?:started|began)\b", r"\bangefangen\b", r"\bbegonnen\b",
)  # fmt: skip
NOT_MEASURED = _any(
    r"\btarget", r"\bgoal", r"\bexpect", r"\bhop(?:e|ing)\b", r"\bshould\b", r"\bwould\b", r"\bcould\b",
    r"\blimit",
    r"\bat (?:most|least)\b", r"\bbelow$", r"\bunder$", r"\bbudget", r"\bziel\b", r"\berwart",
    r"\bsoll\w*\b", r"\bhöchstens\b",
    r"\bmindestens\b", r"\bgrenze", r"\bplanned\b", r"\bgeplant\b", r"\bneeds? (?:to|at)\b",
    r"(?<!crept )(?<!went )(?<!goes )(?<!grew )(?<!came )(?<!shot )\bup to\b",
    r"\btoleran", r"\bwenn\b",
    r"\bif\b", r"\bmax(?:imum)? allowed\b", r"\bhoffe", r"\bpredict", r"\bmargin", r"\bbeyond\b",
    r"\btheoretical", r"\bthreshold",
    r"\bestimat", r"\bguess", r"\bpaper\b", r"\bpublished\b", r"\bverfügbar\b", r"\bavailable\b",
    r"\binterval\b",
)  # fmt: skip
NO_QUALITY_LOSS = _any(
    r"\b(?:no|without|zero|keine?n?|ohne) (?:\w+ )?(?:quality loss|loss (?:of|in) quality|quality "
    r"(?:impact|change|difference|degradation|regression|drop)|qualitäts(?:verlust|einbu(?:ß|ss)e)\w*)",
    r"\bquality(?: (?:is|was|stays?|stayed|remains?|impact|has))?:?(?: \w+)? (?:unchanged|same|identical|"
    r"none|unaffected|preserved|untouched|kept)\b",
    r"\b(?:same|identical|unchanged|equal) quality\b",
    r"\bqualität(?: (?:ist|bleibt|blieb|ist und bleibt))?:? (?:\w+ )?(?:unverändert|gleich|identisch|"
    r"erhalten)\b",
    r"\b(?:gleiche|unveränderte|identische)r? (?:bild)?qualität\b",
    r"\b(?:leaves?|left|keeps?|kept) (?:the )?quality (?:as it was|alone|untouched|intact)\b",
    r"\blossless\b", r"\bverlustfrei\b",
)  # fmt: skip
BETTER_QUALITY = _any(
    r"\b(?:better|improved|higher) (?:image )?quality\b", r"\bquality (?:is |even )?(?:improved|improves|"
        r"better|rose|up)\b",
    r"\bbessere (?:bild)?qualität\b", r"\bqualität (?:ist )?(?:besser|verbessert|steigt|gestiegen)\b",
)  # fmt: skip
ARROW = re.compile(r"^\s*(?:to|auf|→|->|=>|⟶|➜|down to|up to|bis)\s*(?:only |nur )?[~≈]?\s*$", re.IGNORECASE)
PARENT = re.compile(
    r"\bparents?\b\s*(?:[:=]|is\b)?|\bbased (?:up)?on\b|\bbuil(?:ds|t) (?:up)?on\b|\bon top of\b|\bbranched "
    r"(?:off )?from\b|\bforked from\b|"
    r"\bvorgänger\b\s*(?:[:=]|ist\b)?|\b(?:baut|setzt) auf\b|\baufbauend auf\b|\bbasiert auf\b|\bauf basis "
    r"von\b|(?<=\()auf\b",
    re.IGNORECASE,
)
_ABBREVIATED = "".join(
    rf"(?<!\b{word})"
    for word in ("ca", "vs", "nr", "mio", "sek", "min", "inkl", "max", "approx", "st", r"\w\. \w", r"\w\.\w")
)
_STOP = rf"(?<![\d]){_ABBREVIATED}(?!(?<=\b\w)[.]\s?\w[.])[.](?=\s|$)"
"""Not that of 'e.g.' and 'z. B.'; that of '36 s.' and of a phase called A."""
SENTENCE_END = re.compile(rf"{_STOP}|[!?](?=\s|$)|(?<=\d)[.](?=\s+\D|$)|;|\s\|\s|\s[–—]\s", re.IGNORECASE)
CLAUSE_END = re.compile(
    rf"{_STOP}|[!?](?=\s|$)|(?<=\d)[.](?=\s+\D|$)|[;,()](?!\d)|\s\|\s|\s[–—/]\s|"
    rf"\b(?:and|und|but|aber)\b",
    re.IGNORECASE,
)


def last_match(pattern: re.Pattern[str], text: str) -> int:
    """Where the last occurrence ends; -1 if there is none."""
    return max((found.end() for found in pattern.finditer(text)), default=-1)


def tail(text: str, boundary: re.Pattern[str]) -> str:
    """What stands behind the last boundary."""
    return text[max((found.end() for found in boundary.finditer(text)), default=0) :]


def head(text: str, boundary: re.Pattern[str]) -> str:
    """What stands before the first boundary."""
    found = boundary.search(text)
    return text[: found.start()] if found else text
