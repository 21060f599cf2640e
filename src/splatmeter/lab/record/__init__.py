"""What was measured: a folder per run is the evidence, a database is the index built from the folders."""
