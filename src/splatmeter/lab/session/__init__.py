"""Blocks of fresh processes in random order: what was planned, carried out and resumed."""
