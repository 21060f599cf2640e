"""Logs that people keep: reading them, doubting them, and writing them with every number computed."""

from splatmeter.lab.log.findings import audit_log
from splatmeter.lab.log.reading import parse_log
from splatmeter.lab.log.writing import write_log

__all__ = ["audit_log", "parse_log", "write_log"]
