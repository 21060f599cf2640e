"""The log that the lab writes, with every number computed; `lab/handlog` reads and doubts those of people."""

from splatmeter.lab.log.writing import write_log

__all__ = ["write_log"]
