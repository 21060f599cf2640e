"""What makes a measurement questionable: one function per rule, one sentence with arithmetic per finding."""

from splatmeter.lab.audit.rules import audit

__all__ = ["audit"]
