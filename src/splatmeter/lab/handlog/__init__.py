"""Logs that people keep by hand: reading them in whatever style, and finding what contradicts itself."""

from splatmeter.lab.handlog.findings import audit_log
from splatmeter.lab.handlog.reading import parse_log
from splatmeter.lab.handlog.understanding import Understanding, understanding

__all__ = ["Understanding", "audit_log", "parse_log", "understanding"]
