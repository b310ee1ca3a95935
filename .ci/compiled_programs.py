"""Settings for the compilation of programs in tests: each once per run of nox, and some without expensive passes."""

import os
import tempfile

# It exists only for this run of nox, because a killed test may leave an incomplete entry.
_KEPT = tempfile.TemporaryDirectory(prefix="jax-cache-")
COMPILED_ONCE = {
    # All sessions share compiled programs, because the tests spend most of their time on compilation.
    "JAX_COMPILATION_CACHE_DIR": _KEPT.name,
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
# Skips the expensive passes of LLVM, like jax's own tests. JAX_DISABLE_MOST_OPTIMIZATIONS=0 includes them.
COMPILED_SOON = {"JAX_DISABLE_MOST_OPTIMIZATIONS": os.environ.get("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")}
# Plugins whose tests compare numbers within tolerances, and spend most of their time on compilation.
MOSTLY_COMPILATION = ("canned_bert", "canned_tabular", "explain", "heads", "modules", "slices")
