"""Blocks of fresh processes in balanced random order: what was planned, carried out and resumed."""
