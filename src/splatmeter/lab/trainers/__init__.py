"""Adapters: what any trainer prints, turned into the events of our own."""
