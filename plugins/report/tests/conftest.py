"""Makes the results that the tests share importable by their name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
