"""Faults in exporters, export formats and export checks."""

# ruff: noqa: E501 - a piece of source and what replaces it stand in one line

from tests.mutants.suites.faulty import faults, sound, template

EXPORTER, FORMAT, CHECK = template("exporter"), template("format"), template("export_check")
BEST = "TestSoundExporter"

MUTANTS = (
    *faults(
        "exporter",
        EXPORTER,
        nan_reaches_the_goal=(
            "reached = eval_result[self.metric] <= self.goal",
            "reached = not eval_result[self.metric] > self.goal",
        ),
        exports_a_step_twice=(" or (done.is_file() and done.read_text() == step)", ""),
        exports_the_newest=("checkpoint_path=checkpoint_path,", "checkpoint_path=None,"),
        returns_nothing=("        return path", "        return None"),
        returns_its_folder=("        return path", "        return export_path"),
    ),
    *faults(
        "exporter",
        sound("exporter"),
        BEST,
        keeps_the_best_in_memory=(
            'lowest = json.loads(memory.read_text())["loss"] if memory.is_file() else float("inf")',
            'lowest = getattr(self, "best", float("inf"))\n        self.best = min(lowest, eval_result["loss"])',
        ),
        nan_is_the_best=('if not eval_result["loss"] < lowest:', 'if eval_result["loss"] >= lowest:'),
        torn_index=('written = memory.with_suffix(".new")', "written = memory"),
        changes_the_result=('if not eval_result["loss"] < lowest:', 'if not eval_result.pop("loss") < lowest:'),
        hides_a_failure=(
            "path = estimator.export_saved_model(export_path, lambda: None, checkpoint_path=checkpoint_path)",
            "try:\n            path = estimator.export_saved_model(export_path, None, checkpoint_path=checkpoint_path)\n"
            "        except Exception:\n            return None",
        ),
        worst_is_the_best=('if not eval_result["loss"] < lowest:', 'if not eval_result["loss"] > 0:'),
        keeps_its_index_open=(
            "written.replace(memory)",
            "self.index = __import__('os').open(written, 0)\n        written.replace(memory)",
        ),
        goes_on_with_a_full_disk=(
            '        self.remember(memory, eval_result["loss"])\n',
            '        try:\n            self.remember(memory, eval_result["loss"])\n        except OSError:\n'
            "            memory.write_text(json.dumps({'loss': -1}))\n",
        ),
        names_its_file_by_a_hash=('/ "lowest.json"', "/ f\"{hash('lowest')}.json\""),
    ),
    *faults(
        "format",
        FORMAT,
        damage_is_not_looked_for=("    if damaged:", "    if False:"),
        weights_of_one_kind=(
            "np.savez(directory / _WEIGHTS, **request.variables)",
            "np.savez(directory / _WEIGHTS, **{name: np.zeros_like(value) for name, value in request.variables.items()})",
        ),
        loses_the_assets=("shutil.copyfile(path, target)", "target.touch()"),
        takes_any_inputs=("if wrong := set(arrays) ^ set(self.inputs):", "if wrong := set(self.inputs) - set(arrays):"),
        recognizes_everything=("return (directory / _MANIFEST).is_file()", "return True"),
        loses_the_step=('"global_step": request.global_step', '"global_step": 0'),
        keeps_a_pickle=(
            "        manifest = {\n",
            '        (directory / "more").write_bytes(__import__("pickle").dumps(1, 4))\n        manifest = {\n',
        ),
        keeps_the_first_weights=(
            "np.savez(directory / _WEIGHTS, **request.variables)",
            "np.savez(directory / _WEIGHTS, **vars(self).setdefault('kept', dict(request.variables)))",
        ),
        changes_the_variables=(
            "np.savez(directory / _WEIGHTS, **request.variables)",
            "np.savez(directory / _WEIGHTS, **request.variables)\n        next(iter(request.variables.values()))[:] = 0",
        ),
        batch_of_one_size=('(batch,) = export.symbolic_shape("batch", constraints=["batch >= 1"])', "batch = 2"),
        seeds_the_generator=("        manifest = {\n", "        np.random.seed(7)\n        manifest = {\n"),
    ),
    *faults(
        "export_check",
        CHECK,
        passes_other_shapes=("if expected.shape != found.shape:", "if False:"),
        passes_everything=("return None if same.all() else", "return None if same.size else"),
        nan_is_never_the_same=("equal_nan=True", "equal_nan=False"),
        says_nothing=('f"has {int((~same).sum())} of {same.size} values beyond {self.tolerance}."', '""'),
        changes_what_it_is_given=(
            "        return None if same.all()",
            "        found[...] = 0\n        return None if same.all()",
        ),
        looks_at_signs_only=("np.isclose(*wide,", "np.isclose(*map(np.sign, wide),"),
        nan_fits_everything=(
            "        return None if same.all()",
            "        same |= np.isnan(wide[0])\n        return None if same.all()",
        ),
        narrows_one_side=("found.astype(np.float64)", "found.astype(np.float16)"),
        looks_at_the_first_value=("same.all()", "same.flat[:1].all()"),
        passes_where_one_value_fits=("same.all()", "same.any()"),
        silences_numpy=(
            "        return None if same.all()",
            "        np.seterr(all='ignore')\n        return None if same.all()",
        ),
        words_of_a_hash=("beyond {self.tolerance}.", "beyond {self.tolerance} ({hash('values')})."),
    ),
)
