"""How the tests compile programs: each once in a run of nox, and some without the expensive passes."""

import os
import tempfile

# Exists only for this run of nox, because a test that kills a process may leave half an entry.
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
