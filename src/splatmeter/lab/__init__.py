"""The lab: plans, runs, records, judges and reports. It knows a trainer only by its events."""
