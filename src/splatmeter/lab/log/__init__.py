"""Logs that people keep: reading them, doubting them, and writing them with every number computed."""
