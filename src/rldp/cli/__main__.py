"""`python -m rldp.cli`, the same as `rldp`."""

import sys

from rldp.cli import main

sys.exit(main())
