"""`python -m amux` is the `amux` command."""

import sys

from amux.app import main

sys.exit(main())
