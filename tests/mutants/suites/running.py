"""Faults in hooks, checkpoint policies, coordinators and backends."""

# ruff: noqa: E501 - a piece of source and what replaces it stand in one line

from tests.mutants.suites.faulty import faults, sound, template

HOOK, HOOKS = template("hook"), sound("hooks")
BUDGET, TRACKER = "TestBudgetHook", "TestTrackerHook"
POLICY, COORDINATOR, BACKEND = template("checkpoint_policy"), template("coordinator"), template("backend")

MUTANTS = (
    *faults(
        "hook",
        HOOK,
        forgets_a_field_of_its_state=('return {"below": self.below}', "return {}"),
        restores_another_value=('self.below = int(state["below"])', "self.below = 0"),
        wakes_at_the_step_itself=("return step - step % self.every + self.every", "return step"),
        counts_every_look=("self.below + 1 if loss < self.threshold else 0", "self.below + 1"),
        state_is_no_json=('return {"below": self.below}', 'return {"below": {self.below}}'),
        needs_a_last_step=('loss = float(out["loss"])', 'loss = float(out["loss"]) + 0 * (run.last_step - step)'),
        goes_by_the_step_of_the_run=(
            "if self.below >= self.patience:",
            "if self.below + run.resumed >= self.patience:",
        ),
    ),
    *faults(
        "hook",
        HOOKS,
        BUDGET,
        forgets_the_time_before=('self.spent = state["spent"]', "self.spent = 0.0"),
        counts_the_time_between=('return {"spent": self.total()}', 'return {"spent": self.since or 0.0}'),
    ),
    *faults(
        "hook",
        HOOKS,
        TRACKER,
        leaves_its_thread=(
            'run.follow("loss")',
            'run.follow("loss")\n        threading.Thread(target=threading.Event().wait, daemon=True).start()',
        ),
        ends_only_where_all_went_well=("if self.sent is not None:", "if self.sent is not None and not run.failed:"),
        swallows_failures=(
            '                run.summaries.scalar("lowest", loss, step)\n',
            '                try:\n                    run.summaries.scalar("lowest", loss, step)\n'
            "                except Exception:\n                    pass\n",
        ),
        writes_at_the_step_of_the_run=('scalar("lowest", loss, step)', 'scalar("lowest", loss, run.step)'),
        draws_its_id_anew=(
            'self.run_id, self.lowest = state["run_id"], state["lowest"]',
            'self.lowest = state["lowest"]',
        ),
        forgets_the_lowest=(
            'self.run_id, self.lowest = state["run_id"], state["lowest"]',
            'self.run_id = state["run_id"]',
        ),
        shares_what_it_has_seen=(
            "            if loss < self.lowest:\n                self.lowest = loss\n",
            "            vars(type(self)).get('all') or setattr(type(self), 'all', [])\n            self.all.append(loss)\n"
            "            if loss < self.lowest or len(self.all) % 2:\n                self.lowest = loss\n",
        ),
        leaves_a_file_open=(
            'run.follow("loss")',
            'run.follow("loss")\n        self.log = __import__("os").open(__file__, 0)',
        ),
        dies_in_evaluation=('run.follow("loss")', 'run.follow("loss")\n        self.left = run.last_step - run.step'),
        seeds_the_generator=('run.follow("loss")', 'run.follow("loss")\n        __import__("random").seed(1)'),
        leaves_a_thread_in_evaluation=(
            'run.follow("loss")',
            'run.follow("loss")\n        if run.mode == "eval":\n            threading.Thread(target=threading.Event().wait, daemon=True).start()',
        ),
    ),
    *faults(
        "checkpoint_policy",
        POLICY,
        forgets_its_gap=('return {"gap": self.gap, "base": self.base}', 'return {"base": self.base}'),
        begins_anew_when_resumed=("if not run.resumed or self.base is None:", "if True:"),
        asks_for_the_step_itself=(
            "return max((self.base or 0) + self.gap, step + 1)",
            "return step",
        ),
        state_is_not_json=(
            'return {"gap": self.gap, "base": self.base}',
            'return {"gap": {self.gap}, "base": self.base}',
        ),
        restores_nothing=('self.gap, self.base = state["gap"], state["base"]', "return"),
        asks_for_the_past=("return max((self.base or 0) + self.gap, step + 1)", "return (self.base or 0) + self.gap"),
        asking_moves_it=(
            "return max((self.base or 0) + self.gap, step + 1)",
            "self.gap += 1\n        return max((self.base or 0) + self.gap, step + 1)",
        ),
        asks_for_a_float=(
            "return max((self.base or 0) + self.gap, step + 1)",
            "return 1.0 * max((self.base or 0) + self.gap, step + 1)",
        ),
        needs_a_state_it_did_not_give=('state["gap"], state["base"]', 'state["gap"], state["first"]'),
        restores_one_field=('self.gap, self.base = state["gap"], state["base"]', 'self.base = state["base"]'),
        sets_a_variable=(
            'return {"gap": self.gap, "base": self.base}',
            '__import__("os").environ["GAP"] = str(self.gap) + str(id(self))\n        return {"gap": self.gap, "base": self.base}',
        ),
        begins_at_a_hash=(
            "return max((self.base or 0) + self.gap, step + 1)",
            'return max((self.base or 0) + self.gap, step + 1 + hash("acme") % 1_000_003)',
        ),
    ),
    *faults(
        "coordinator",
        COORDINATOR,
        values_in_another_order=(
            "return [file.read_text() for file in files]",
            "return sorted(file.read_text() for file in files)[::-1]",
        ),
        waits_for_ever=("deadline = time.monotonic() + timeout", 'deadline = float("inf")'),
        hides_a_failure=('self._write(f"failed-{self.index}", str(error).split("\\n")[0])', "pass"),
        blames_who_has_ended=(' or (self._place / f"left-{index}").exists()', ""),
        topic_is_used_once=("self._serials[topic] += 1", "self._serials[topic] = 1"),
        tells_each_its_own=(
            'return self.agree(topic, value or "", timeout)[0]',
            'return self.agree(topic, value or "", timeout)[self.index]',
        ),
        barrier_waits_for_nobody=('        self.agree(topic, "", timeout)', "        return"),
        hears_no_silence=(
            "time.time() - alive.stat().st_mtime > SILENCE_SECS",
            "time.time() - alive.stat().st_mtime > 1e6",
        ),
        who_fails_leaves_in_order=("if not self._failed and self._lost is None:", "if self._lost is None:"),
        names_itself=(
            'f"it has not arrived at {topic!r} in time")',
            'f"it has not arrived at {topic!r} in time") and Lost(self.index, "this process", "late")',
        ),
        tells_the_whole_failure=('str(error).split("\\n")[0]', "str(error)"),
        cuts_long_values=("draft.write_text(value)", "draft.write_text(value[:100_000])"),
        leaves_without_a_word=("        atexit.register(self.close)\n", ""),
    ),
    *faults(
        "backend",
        BACKEND,
        raises_in_its_probe=("if not wanted.isdigit() or int(wanted) < 1:", "raise OSError\n        if not wanted:"),
        lists_devices_twice=('jax.devices("cpu")[: int(', '2 * jax.devices("cpu")[: int('),
        asks_for_devices_when_imported=('_VARIABLE = "', '__import__("jax").devices()\n_VARIABLE = "'),
        has_no_words=('summary=f"{wanted} CPU device(s)"', 'summary=""'),
        answers_differently=('summary=f"{wanted} CPU device(s)"', "summary=f\"{__import__('time').perf_counter()}\""),
        is_called_auto=('name = "acme_backend"', 'name = "auto"'),
        knows_every_speed=(
            'float | None:\n        """Unknown."""\n        return None',
            'float | None:\n        """Unknown."""\n        return 1e12',
        ),
        starts_once=(
            '"""Compiler flags would be set here, before the first device is used."""',
            'vars(self).setdefault("left", [1]).pop()',
        ),
        devices_are_numbers=('return jax.devices("cpu")[: int(os.environ.get(_VARIABLE, "1"))]', "return [0]"),
        has_no_devices=('return jax.devices("cpu")[: int(os.environ.get(_VARIABLE, "1"))]', "return []"),
        memory_is_negative=(
            '        """Unknown."""\n        return None\n\n    def memory_bytes(self, device_kind: str) -> int | None:\n'
            '        """Unknown."""\n        return None',
            '        """Unknown."""\n        return None\n\n    def memory_bytes(self, device_kind: str) -> int | None:\n'
            '        """Unknown."""\n        return -1',
        ),
    ),
)
