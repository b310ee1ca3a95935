"""How the tests compile programs: each once in a run of nox, and some without the expensive passes."""

import os
import tempfile

# Lives as long as this run of nox: a test that kills a process may leave half an entry.
_KEPT = tempfile.TemporaryDirectory(prefix="jax-cache-")
COMPILED_ONCE = {
    # A program that one session has compiled is compiled for all: the tests are mostly compilation.
    "JAX_COMPILATION_CACHE_DIR": _KEPT.name,
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
# Without the expensive passes of LLVM, as jax's own tests. With JAX_DISABLE_MOST_OPTIMIZATIONS=0, with them.
COMPILED_SOON = {"JAX_DISABLE_MOST_OPTIMIZATIONS": os.environ.get("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")}
# Plugins whose tests compare numbers within tolerances, and compile most of the time.
MOSTLY_COMPILATION = ("canned_bert", "canned_tabular", "explain", "heads", "modules", "slices")
