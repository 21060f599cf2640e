"""Where files that belong to this user are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """$SPLATMETER_CACHE, else splatmeter/ in $XDG_CACHE_HOME, else in ~/.cache."""
    chosen = os.environ.get("SPLATMETER_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    general = os.environ.get("XDG_CACHE_HOME")
    return (Path(general) if general else Path.home() / ".cache") / "splatmeter"
