"""Faults in components of kinds that our plugins define: commands and formats of schemas."""

# ruff: noqa: E501 - a piece of source and what replaces it stand in one line

from tests.mutants.suites.faulty import faults, template

COMMAND, SCHEMA = template("command"), template("schema")

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
)
