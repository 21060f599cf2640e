"""One HTML page that shows what a lab found: no network, no libraries, every number with its run."""
