"""Models on disk: opened with the settings of their run, and written in any form."""
