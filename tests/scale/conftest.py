"""Settings of the tests of scale. The tests of this folder and the processes they start import its modules by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
