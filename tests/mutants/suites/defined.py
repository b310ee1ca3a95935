"""Faults in components of kinds that our plugins define: commands, formats of schemas, launchers, sections and programs."""

# ruff: noqa: E501 - a piece of source and what replaces it stand in one line

from tests.mutants.suites.faulty import faults, template

COMMAND, SCHEMA, LAUNCHER = (template(kind) for kind in ("command", "schema", "launcher"))
SECTION, PROGRAM = template("report_section"), template("program_format")

MUTANTS = (
    *faults(
        "command",
        COMMAND,
        has_no_words=('    """Say how large the files of a folder are, the largest first."""\n', ""),
        imports_numpy=("import json\n", "import json\n\nimport numpy\n"),
        argument_without_help=('metavar="DIR", help="the folder"', 'metavar="DIR"'),
        takes_a_folder_that_is_not_there=("if not folder.is_dir():", "if False:"),
        shows_less_than_one=("if args.most < 1:", "if False:"),
        prints_nothing=('print(f"{size:>12,}  {name}")', "pass"),
        json_has_a_heading=("print(json.dumps(dict(shown)))", 'print("files:", json.dumps(dict(shown)))'),
        returns_nothing=('{name}")\n        return 0', '{name}")\n        return None'),
        error_of_another_kind=('raise ArgumentError(f"There is', 'raise RuntimeError(f"There is'),
        goes_into_the_folder=(
            "folder = Path(args.folder)",
            "folder = Path(args.folder).absolute()\n        if folder.is_dir():\n            __import__('os').chdir(folder)",
        ),
        sets_a_variable=(
            "folder = Path(args.folder)",
            "folder = Path(args.folder)\n        __import__('os').environ['ACME'] = '1'",
        ),
        prints_the_time=("{size:>12,}  {name}", "{size:>12,}  {name} {__import__('time').perf_counter()}"),
        writes_before_it_refuses=(
            "folder = Path(args.folder)",
            "folder = Path(args.folder)\n        Path('log.txt').touch()",
        ),
    ),
    *faults(
        "schema",
        SCHEMA,
        loses_the_label=('"label": schema.label', '"label": None'),
        lists_for_tuples=("tuple(value) if isinstance(value, list) else value", "value"),
        loses_what_was_seen=("return FeatureSchema(seen=seen,", "return FeatureSchema("),
        sorts_its_features=(
            "in schema.features.values()]",
            "in sorted(schema.features.values(), key=lambda one: one.name)]",
        ),
        order_of_hashes=(
            "in schema.features.values()]",
            "in sorted(schema.features.values(), key=lambda one: hash(one.name))]",
        ),
        rounds=(
            "data = json.loads(text)",
            "data = json.loads(text, parse_float=lambda number: round(float(number), 3))",
        ),
        counts_are_real_numbers=("data = json.loads(text)", "data = json.loads(text, parse_int=float)"),
        takes_another_format=('if data["format"] != FORMAT:', "if False:"),
        does_not_name_the_file=('f"{path} is no schema', 'f"no schema'),
        lets_errors_of_json_out=("except (ValueError, KeyError, TypeError)", "except (KeyError, TypeError)"),
        requires_everything=(
            'seen = Seen(**_tuples(row.pop("seen")))',
            'seen = Seen(**_tuples(row.pop("seen")))\n    row["required"] = True',
        ),
    ),
    *faults(
        "launcher",
        LAUNCHER,
        takes_any_option=("        job.check_options(self.name, {})\n", ""),
        plan_hides_the_command=("commands=(job.command,) * job.processes", 'commands=(("run",),)'),
        plan_holds_a_number_of_chance=("commands=(job.command,)", "commands=((*job.command, uuid.uuid4().hex[:8]),)"),
        plan_makes_a_folder=(
            "        job.check_options(",
            "        Path(job.name).mkdir(exist_ok=True)\n        job.check_options(",
        ),
        knows_every_job=(
            'raise LaunchError(f"There is no job {job_id!r}.")',
            'return JobStatus(phase="pending")',
        ),
        secret_is_short=("secret = new_secret()", "secret = new_secret()[:8]"),
        secret_of_each_process=("told = [{SECRET: secret,", "told = [{SECRET: new_secret(),"),
        secret_of_all_jobs=("secret = new_secret()", 'secret = "0" * 64'),
        all_have_the_first_place=("trainer_environment(job, index, address)", "trainer_environment(job, 0, address)"),
        variables_of_the_job_are_lost=("**os.environ, **job.env, **told", "**os.environ, **told"),
        one_log_for_all=('f"{job_id}.{process}.log"', 'f"{job_id}.log"'),
        one_log_for_all_jobs=('f"{job_id}.{process}.log"', 'f"{process}.log"'),
        restart_empties_the_log=('.open("ab")', '.open("wb")'),
        restarts_after_an_error=("if code != RESUMABLE or", "if code == 0 or"),
        restarts_after_a_stop=("if code != RESUMABLE or job_id in self._stopping:", "if code != RESUMABLE:"),
        restarts_once_too_often=("range(job.max_restarts + 1)", "range(job.max_restarts + 2)"),
        never_restarts=("range(job.max_restarts + 1)", "range(1)"),
        restarts_are_not_counted=("phase=phase, restarts=restarts, why=why", "phase=phase, why=why"),
        stops_nobody=("group.ask_to_end(time.monotonic())", "pass"),
        kills_at_once=(
            "group.ask_to_end(time.monotonic())",
            "[child.kill() for child in children.values()]",
        ),
        waits_for_the_deaf=("job.grace_secs, lambda message", "1e6, lambda message"),
        does_not_say_why=("restarts=restarts, why=why", 'restarts=restarts, why=""'),
        a_stop_is_a_failure=('"resumable" if code == RESUMABLE else "failed"', '"failed"'),
        starts_all_but_one=(
            "job, index, told[index]) for index in range(job.processes)}",
            "job, index, told[index]) for index in range(1)}",
        ),
        a_missing_program_runs_for_ever=(
            "except OSError as error:\n",
            "except OSError as error:\n                return\n",
        ),
        tells_itself_the_secret=(
            "secret = new_secret()",
            "secret = os.environ[SECRET] = new_secret()",
        ),
        leaves_a_thread=(
            "            time.sleep(0.05)\n",
            "            time.sleep(0.05)\n        threading.Thread(target=threading.Event().wait, daemon=True).start()\n",
        ),
        name_in_capitals=('name = "acme_launcher"', 'name = "Acme_Launcher"'),
    ),
    *faults(
        "report_section",
        SECTION,
        has_no_title=("title, order =", "heading, order ="),
        speaks_of_nothing=("            return None\n", '            return "<p>none</p>"\n'),
        needs_results=("if not source.results:", "if False:"),
        needs_two_evaluations=("source.results[min(source.results)]", "source.results[sorted(source.results)[-2]]"),
        leaves_a_tag_open=('</td></tr>" for name', '</td>" for name'),
        closes_twice=("{''.join(rows)}</table>", "{''.join(rows)}</table></table>"),
        has_a_script=('f"<table>{_HEAD}', 'f"<script>1</script><table>{_HEAD}'),
        loads_a_picture=('f"<table>{_HEAD}', "f\"<img src='a.png'><table>{_HEAD}"),
        loads_a_style=('f"<table>{_HEAD}', "f\"<table style='background: url(a)'>{_HEAD}"),
        leads_elsewhere=('f"<table>{_HEAD}', "f\"<a href='x.html'>x</a><table>{_HEAD}"),
        text_is_not_escaped=("html.escape(name)", "name"),
        says_nothing=('        return f"<table>', '        return f"" or None and f"<table>'),
        rounds_to_whole_numbers=("{first[name]}", "{int(first[name])}"),
        changes_the_results=("        names = [", "        last.pop('loss', None)\n        names = ["),
        says_when=("{_HEAD}{", "{_HEAD}{__import__('time').perf_counter_ns()}{"),
    ),
    *faults(
        "program_format",
        PROGRAM,
        is_named_after_the_program=("program, path=path, default", "program, default"),
        forgets_the_command_line=('{**data.get("run_config", {}), **program.settings}', 'data.get("run_config", {})'),
        loses_the_hyperparameters=("if values is not None:", "if values is None:"),
        has_no_hyperparameters=("default_hparams=values", "default_hparams=None"),
        looks_in_the_working_directory=('str(path.parent / data["program"])', 'data["program"]'),
        takes_any_text=("(OSError, ValueError) as error", "OSError as error"),
        takes_any_object=(' or "program" not in data', ""),
        a_missing_file_is_an_error_of_the_system=("(OSError, ValueError) as error", "ValueError as error"),
        does_not_name_the_file=('f"{path} must be an object', 'f"It must be an object'),
        does_not_name_a_missing_file=('f"{path} cannot be read: {error}"', '"It cannot be read."'),
        goes_into_the_folder=(
            "    data = _read(path)",
            "    __import__('os').chdir(path.parent)\n    data = _read(path)",
        ),
        sets_a_variable=(
            "    data = _read(path)",
            "    __import__('os').environ['ACME'] = str(id(settings))\n    data = _read(path)",
        ),
        writes_beside_the_file=(
            "    data = _read(path)",
            "    data = _read(path)\n    (path.parent / 'read.txt').touch()",
        ),
        seed_of_chance=(
            "**program.settings}",
            "'tf_random_seed': __import__('time').perf_counter_ns() % 2**31, **program.settings}",
        ),
    ),
)
