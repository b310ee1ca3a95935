"""The results that the tests share are imported by their name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
