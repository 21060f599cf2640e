"""Plain values that everything after a run works on: samples, findings, aims, kinds of verdicts."""
