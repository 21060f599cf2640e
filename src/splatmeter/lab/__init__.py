"""The second half: plan, execute, record, compare, report. Knows a trainer only by its events."""
