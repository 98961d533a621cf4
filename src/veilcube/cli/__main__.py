"""``python -m veilcube.cli`` is the command ``veilcube``."""

import sys

from veilcube.cli.app import main

sys.exit(main())
