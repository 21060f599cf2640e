"""From the evidence to verdicts: what sessions measured, gathered and compared once for all who ask."""
