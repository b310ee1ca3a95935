"""First values of modules that a library builds as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuleValues:
    """Computes the first values of all variables of one module together.

    Args:
        path: the module's path; its key is derived from it.
        compute: returns the values by name within the module, from a key.
        on_host: whether `compute` must not be traced.
    """

    path: str
    compute: Callable[[jax.Array], Mapping[str, Any]]
    on_host: bool = False

    def of(self, name: str) -> ModuleInitializer:
        """The initialiser of one variable."""
        return ModuleInitializer(self, name)


@dataclass(frozen=True, eq=False)
class ModuleInitializer:
    """The initialiser of one variable of a module. `initialize` computes those of one module together.

    Args:
        module: the values of the whole module.
        name: the variable's name within the module.
    """

    module: ModuleValues
    name: str

    def __call__(self, key: jax.Array, shape: tuple[int, ...], dtype: object) -> Any:
        """The first value, from the module's key."""
        return self.module.compute(key)[self.name]
