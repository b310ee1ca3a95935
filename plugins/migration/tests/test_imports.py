"""Tests of rewritten imports: a program runs wherever it imported TensorFlow, and keeps every name and comment."""

import ast
import sys
import types
from typing import Any

import pytest

from estimator_migration import rewrite

MODES = ("train", "eval")


def run(source: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs a rewritten program with an empty TensorFlow module, and returns the names that it defines."""
    stand_in = types.ModuleType("tensorflow")
    monkeypatch.setitem(sys.modules, "tensorflow", stand_in)
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(rewrite(source).source, "program.py", "exec"), names)
    return names


PROGRAMS = {
    "in two functions": (
        "def train():\n    import tensorflow as tf\n    return tf.estimator.ModeKeys.TRAIN\n"
        "def evaluate():\n    import tensorflow as tf\n    return tf.estimator.ModeKeys.EVAL\n"
        "found = train(), evaluate()\n"
    ),
    "for types, and in a function": (
        "from __future__ import annotations\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import tensorflow as tf\n"
        "def both():\n    import tensorflow as tf\n    return tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL\n"
        "found = both()\n"
    ),
    "beside another on the line": (
        "import os; import tensorflow as tf\nfound = tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL\nos.sep\n"
    ),
    "beside another in the statement": (
        "import os, tensorflow as tf\n"
        "def kept():\n    return tf.layers.dense\n"
        "found = tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL\nos.sep\n"
    ),
    "by its name": (
        '"""A program."""\ntf = __import__("tensorflow")\n'
        "found = tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL\n"
    ),
    "on the line of a condition": (
        "import sys\nif sys: import tensorflow as tf\nfound = tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL\n"
    ),
    "tried": (
        "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    import tensorflow as tf\n"
        "found = tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL\n"
    ),
    "used as a whole": (
        "import tensorflow as tf\n"
        "keys = tf.contrib.learn.ModeKeys if hasattr(tf, 'contrib') else tf.estimator.ModeKeys\n"
        "found = keys.TRAIN, keys.EVAL\n"
    ),
    "used on the line of its import": (
        "from __future__ import annotations; import tensorflow as tf; one = tf.estimator.ModeKeys.TRAIN\n"
        "found = one, tf.estimator.ModeKeys.EVAL\n"
    ),
    "noted on the line of its import": (
        "import tensorflow as tf; hasattr(tf.layers, 'dense') if False else None; one = tf.estimator.ModeKeys.TRAIN\n"
        "found = one, tf.estimator.ModeKeys.EVAL\n"
    ),
    "of a class": (
        "class A:\n    import tensorflow as tf\n    mode = tf.estimator.ModeKeys.TRAIN\n"
        "    def known(self):\n        return self.tf\n"
        "A().known()\nfound = A.mode, 'eval'\n"
    ),
    "global": (
        "def load():\n    global tf\n    import tensorflow as tf\n    return tf.estimator.ModeKeys.TRAIN\n"
        "found = load(), tf and 'eval'\n"
    ),
    "beside an import of its own in a function": (
        "def g():\n    import tensorflow as tf\n    mode = tf and 'train'\n    import estimator_core as ec\n"
        "    return mode, ec.ModeKeys.EVAL\nfound = g()\n"
    ),
    "with the new import before it": (
        "import estimator_core as ec\nimport tensorflow as tf\nfound = tf.estimator.ModeKeys.TRAIN, ec.ModeKeys.EVAL\n"
    ),
    "after a function that imports it": (
        "def train():\n    import tensorflow as tf\n    return tf.estimator.ModeKeys.TRAIN\n"
        "first = train()\nimport tensorflow as tf\nfound = first, tf.estimator.ModeKeys.EVAL\n"
    ),
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_a_rewritten_program_runs(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow.compat", None)  # type: ignore[arg-type]
    try:
        found = run(PROGRAMS[title], monkeypatch)["found"]
    except NameError as error:
        raise AssertionError(f"the rewritten program does not run: {error}") from None
    assert found == MODES
    once = rewrite(PROGRAMS[title]).source
    assert rewrite(once).source == once


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        *(
            (f"import tensorflow as tf\n{exports}\nmode = tf.estimator.ModeKeys.EVAL\n", "import tensorflow as tf")
            for exports in (
                '__all__ = ["tf"]',
                '__all__ = ["m"] + ["tf"]',
                '__all__ += ["tf"]',
                '__all__: list = ["tf"]',
            )
        ),
        ("def load():\n    global tf\n    import tensorflow as tf\n", "    import tensorflow as tf"),
        ("class A:\n    import tensorflow as tf\n\n    x = 1\n\n\nA.tf.layers\n", "    import tensorflow as tf"),
        (
            "def g():\n    m = tf.estimator.ModeKeys.EVAL\n    import estimator_core as ec\n",
            "    m = tf.estimator.ModeKeys.EVAL",
        ),
        (
            "if tf: from tensorflow.train import AdamOptimizer\nz = AdamOptimizer(r, beta1=0.8)\n",
            "z = AdamOptimizer(r, beta1=0.8)",
        ),
    ],
)
def test_what_is_seen_elsewhere_stays_and_nobody_is_told_to_remove_it(source: str, kept: str) -> None:
    done = rewrite(
        source if source.startswith(("import", "class", "def load")) else f"import tensorflow as tf\n{source}"
    )
    assert kept in done.source.splitlines()
    assert "Nothing in this file uses the import" not in done.source
    assert "# MIGRATE: tf" in done.source
    assert rewrite(done.source).source == done.source


def test_the_new_import_is_written_once() -> None:
    done = rewrite(PROGRAMS["with the new import before it"]).source
    assert done.count("import estimator_core as ec") == 1


def test_the_comment_of_an_import_stays_in_its_block() -> None:
    done = rewrite(
        "try:\n    import os\n    import tensorflow as tf  # the big one\nexcept ImportError:\n    raise\n"
        "mode = tf.estimator.ModeKeys.EVAL\n"
    ).source
    assert done.index("import os") < done.index("# the big one") < done.index("except ImportError")
    ast.parse(done)


def test_comments_of_headers_stay_and_the_one_above_a_statement_stays_there() -> None:
    source = (
        "#!/usr/bin/env python\n# Licence\n\n# Trains.\n"
        "@deco(tf_sum(1,\n             name='t',  # one\n             axis=1))\n"
        "def f(x=(\n    tf.\n    estimator  # two\n    .ModeKeys.EVAL)):\n    import tensorflow as tf\n"
        '    if tf.reduce_sum(x, name="total",  # three\n                     axis=1) > 0:\n        return 1\n'
        "import tensorflow as tf\ntf_sum = tf.reduce_sum\n"
    )
    done = rewrite(source).source
    for comment in ("# Licence", "# Trains.", "# one", "# two", "# three"):
        assert done.count(comment) == 1, comment
    lines = done.splitlines()
    assert lines.index("import estimator_core as ec") < lines.index("# Trains.")


def test_an_import_that_other_files_may_need_stays() -> None:
    done = rewrite("import tensorflow.compat.v1 as tf\n").source
    assert done.splitlines()[-1] == "import tensorflow.compat.v1 as tf"
    assert "# MIGRATE: tf: Nothing in this file uses the import." in done
    done = rewrite("import tensorflow as tf\nmode = tf.estimator.ModeKeys.EVAL\nhelp(tf)\n").source
    assert done.splitlines()[-4:] == [
        "import tensorflow as tf",
        "import estimator_core as ec",
        "mode = ec.ModeKeys.EVAL",
        "help(tf)",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "def best(ec):\n    return ec, tf.estimator.ModeKeys.TRAIN\n",
        "ec = 3\nmode = tf.estimator.ModeKeys.TRAIN\n",
        "def best(jnp):\n    return tf.reduce_sum(jnp)\n",
        "import numpy as jnp\nx = tf.reduce_sum(jnp.ones(3))\n",
    ],
)
def test_a_name_of_the_program_is_not_taken_for_a_module(source: str) -> None:
    done = rewrite(f"import tensorflow as tf\n{source}")
    assert done.replaced == 0
    assert "of this program." in done.source.replace("\n#   ", " ")


@pytest.mark.parametrize("source", ["import jax.numpy as jnp\n", "from jax import numpy as jnp\n"])
def test_the_module_itself_is_not_in_the_way(source: str) -> None:
    assert rewrite(f"import tensorflow as tf\n{source}x = tf.reduce_sum(y)\n").source.endswith("x = jnp.sum(y)\n")


def test_comments_of_what_goes_stay() -> None:
    source = (
        "# The new names.\n"
        "import tensorflow as tf  # one\n"
        "# The old names.\n"
        "import tensorflow.compat.v1 as tf1  # keep: ops\n"
        "from tensorflow.estimator import (Estimator,  # the class\n"
        "                                  RunConfig)\n"
        "m = tf.estimator.ModeKeys.EVAL, tf1.estimator.ModeKeys.TRAIN\n"
        "x = tf.reduce_sum(y,\n"
        '                  name="total",  # asked for\n'
        "                  axis=1)\n"
    )
    done = rewrite(source).source
    for comment in ("# The new names.", "# one", "# The old names.", "# keep: ops", "# the class", "# asked for"):
        assert done.count(comment) == 1, comment
    assert done.index("# keep: ops") < done.index("m = ")


def test_a_class_of_a_function_is_left_to_the_reader() -> None:
    done = rewrite("import tensorflow as tf\nclass Mine(tf.train.AdamOptimizer):\n    pass\n").source
    assert "class Mine(tf.train.AdamOptimizer):" in done
    assert "# MIGRATE: tf.train.AdamOptimizer: " in done
    assert "class Clock(ec.CheckpointListener):" in (
        rewrite("import tensorflow as tf\nclass Clock(tf.train.CheckpointSaverListener):\n    pass\n").source
    )


@pytest.mark.parametrize(
    "made",
    [
        "tf.train.AdamOptimizer(0.1) if slow else tf.train.GradientDescentOptimizer(0.1)",
        "tf.contrib.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))",
        "tf.contrib.estimator.clip_gradients_by_norm(tf.train.AdamOptimizer(0.1), 1.0)",
    ],
)
def test_a_method_of_an_optimizer_is_named(made: str) -> None:
    done = rewrite(f"import tensorflow as tf\none = {made}\nop = one.minimize(loss)\n").source
    assert "# MIGRATE: tf.train.Optimizer().minimize" in done


def test_a_choice_of_two_functions_keeps_its_arguments() -> None:
    chosen = "one = tf.train.AdamOptimizer if slow else tf.train.AdadeltaOptimizer\nz = one(r, beta1=0.8)\n"
    assert rewrite(f"import tensorflow as tf\n{chosen}").source.endswith("z = one(r, beta1=0.8)\n")
