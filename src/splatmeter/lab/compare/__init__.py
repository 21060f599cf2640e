"""Pure functions from samples to a verdict: ratios, intervals, quality, rules."""
