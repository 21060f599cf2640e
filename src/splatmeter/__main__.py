"""`python -m splatmeter` is `splatmeter`."""

import sys

from splatmeter.cli.main import main

sys.exit(main())
