# /// script
# dependencies = ["nox[uv]>=2026.10"]
# ///
"""Every check of this repository, one session each: `uv run nox`, or `uv run nox -s lint` for a single session.

Sessions that test packages (`core`, `plugin-*`, `all`, `wheels`) install built wheels into empty environments and run
where the checkout cannot be imported. The tests of every package use the conformance kit, so the wheel of
estimator-testing is a tool there, like pytest. It is installed after the packages under test were checked alone. So is
the wheel of estimator-signatures, with which tests export.
Sessions that check the sources (`lint`, `types`, `imports`, `docs`) use the development environment of `uv sync`.
Sessions with `default=False` run only when named. CONTRIBUTING.md has a table of all sessions.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import nox
from uv import find_uv_bin


class Format(NamedTuple):
    """The distributions of an export format."""

    extras: tuple[str, ...]
    readers: tuple[str, ...]
    oldest: tuple[str, ...] = ()


UV = find_uv_bin()  # installed by nox[uv], wherever nox was started from
ROOT = Path(__file__).parent
sys.path.append(str(ROOT / ".ci"))
import publishing  # noqa: E402, F401 - sessions of its own
from card_session import define_card_session  # noqa: E402
from compiled_modules import share_compiled_modules  # noqa: E402
from compiled_programs import COMPILED_ONCE, COMPILED_SOON, MOSTLY_COMPILATION  # noqa: E402
from emulators import azurite, storage_testbench  # noqa: E402
from export_sessions import House, define_export_sessions  # noqa: E402
from kit_sessions import DEFINED, KINDS_IN_CUT, OTHER_KINDS, define_kit_sessions  # noqa: E402
from launcher_sessions import define_launcher_sessions  # noqa: E402
from lowest_session import define_lowest_session, lowest_tests  # noqa: E402
from shared_modules import shared_modules  # noqa: E402

REPORTS = ROOT / ".nox" / "reports"
REPORTS.mkdir(parents=True, exist_ok=True)
PLUGINS = sorted(path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml"))
EVERYTHING = ["estimator_core", *(f"estimator_{plugin}" for plugin in PLUGINS)]
LIGHT_EXTRAS = {"estimator_exporters": ("serve", "grpc"), "estimator_runs": ("folds", "report", "sweep", "yaml")}
CHECK_INSTALLED = str(ROOT / ".ci" / "check_installed.py")
NEWEST_TENSORFLOW = "tensorflow-cpu==2.21.*"
# Export formats: the packages that write them in addition to the plugin itself, and all packages that read them.
FORMATS = {
    "onnx": Format(
        extras=("onnx", "onnx-hashes"),
        readers=("onnxruntime", "onnxruntime-extensions==0.14.*", "numpy"),
        oldest=("onnxruntime==1.20.*", "onnxruntime-extensions==0.13.*", "numpy"),
    ),
    "saved_model": Format(extras=("saved_model",), readers=(NEWEST_TENSORFLOW,), oldest=("tensorflow-cpu==2.15.1",)),
    "stablehlo": Format(extras=(), readers=("jax", "numpy", "flatbuffers", "safetensors")),
}
# Modules that only separate sessions import, because they need Ray, Beam or TensorFlow.
IMPORT_ENGINES = [f"exporters/src/estimator_exporters/scoring/on_{engine}.py" for engine in ("ray", "beam")]
IMPORT_ENGINES += [f"launchers/src/estimator_launchers/ray_{part}.py" for part in ("driver", "worker")]
IMPORT_ENGINES += ["migration/src/estimator_migration/proving/tf_side.py"]
RESOLUTIONS = ["highest", "lowest-direct"]
QUICK_AND_ALONE = "not plugins and not libraries and not slow"
OLDEST = "3.11"

nox.needs_version = ">=2026.10"
nox.options.default_venv_backend = "uv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False  # if the newer Python is missing, the summary names the skip
nox.options.report = str(REPORTS / "sessions.json")
nox.options.sessions = ["lint", "imports", "types", "docs", "mutants_cut", "core"]
nox.options.sessions += [f"plugin-{plugin}(resolution='highest')" for plugin in PLUGINS]
nox.options.sessions += ["lowest", "wheels", f"template(kinds='{','.join(KINDS_IN_CUT)}')", "template(kinds='command')"]
nox.options.sessions += ["all", "object_stores", "kubernetes", "slurm", "ray"]
nox.options.sessions += ["notebook"]

# Rules about the sources and snippets of the documents: sessions `lint`, `imports` and `docs`.
NEED_THE_CHECKOUT = ("--ignore=tests/repo", "--ignore=tests/docs")
# Areas that a newer Python and its newer jax could break first: tracing, random numbers, options of compilers. Also
# mutual TLS, which only that jax supports.
ON_NEWER_PYTHON = ("tests/model", "tests/checkpoint/test_store.py")
ON_NEWER_PYTHON += ("plugins/cluster/tests/test_encryption.py", "plugins/backends_gpu/tests/test_flags.py")
# Areas that lower versions of the dependencies could break, within the time of the whole suite.
ON_LOWEST_VERSIONS = ("tests/loop/test_calls.py", "tests/loop/test_resume.py", "tests/summaries")
ON_LOWEST_VERSIONS += tuple(f"tests/checkpoint/test_{name}.py" for name in ("frozen", "names", "restore", "store"))
# The conformance kit, which tests the core, the plugins and third-party packages.
KIT = "estimator_testing"
# The kit, and the package with which tests export.
TOOLS = (KIT, "estimator_signatures")
# Files of the core's tests that the tests of plugins use: recordings, written packages, and a helper that runs models.
SHARED = ("tests/parity", "tests/plugins/fake_site.py", "tests/model/model_runner.py")
# A plugin outside the workspace, with the run that uses it.
OF_OTHERS = "tests/wheels/acme-roles"
# The tests that fit into the ordinary run: less than a minute on two cores.
CUT_OF_MUTANTS = 8
# Nothing from the checkout is importable by accident, and no test finds an accelerator by chance.
ISOLATED = {
    "PYTHONSAFEPATH": "1",
    "PYTHONPATH": None,
    "JAX_PLATFORMS": "cpu",
    "KERAS_BACKEND": "jax",
    **COMPILED_ONCE,
}


def newer_python() -> str:
    """Returns the newest supported Python of this machine, or the one whose absence the summary names."""
    for version in ("3.13", "3.12"):
        found = subprocess.run([UV, "python", "find", "--no-python-downloads", version], capture_output=True)
        if found.returncode == 0:
            return version
    return "3.13"


# ---- Installing -----------------------------------------------------------------------------------------------------


@functools.cache
def wheelhouse() -> Path:
    """Returns a folder with one freshly built wheel of every package of the workspace, made from its sdist."""
    folder = ROOT / ".nox" / "wheelhouse"
    shutil.rmtree(folder, ignore_errors=True)
    command = [UV, "build", "--all-packages", "--quiet", "--no-create-gitignore", "-o", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


def wheel(package: str, *extras: str) -> str:
    """Returns the requirement for the built wheel of an import name, with extras and the light extras of its tests."""
    (path,) = wheelhouse().glob(f"{package}-*.whl")
    wanted = [*LIGHT_EXTRAS.get(package, ()), *extras]
    return f"{path}[{','.join(wanted)}]" if wanted else str(path)


def install_wheels(session: nox.Session, *packages: str, resolution: str = "highest", groups: tuple[str, ...]) -> None:
    """Installs built packages first, so that tools use the versions of `resolution`. `groups` are those of a pyproject.

    The packages are checked alone. Then the tools are installed: the groups, the kit, and the package that exports.
    """
    projects = [project_file(package) for package in packages]
    # Naming the projects makes their requirements direct, so `lowest-direct` applies to them.
    requirements = [argument for path in projects for argument in ("-r", str(path))]
    wheels = [wheel(package) for package in packages]
    session.install("--no-sources", "--resolution", resolution, *requirements, *wheels)
    if resolution == "highest":
        share_compiled_modules(session.virtualenv.location)
    lowest = ["--jax", lower_bound("jax")] if resolution == "lowest-direct" else []
    session.run("python", CHECK_INSTALLED, *packages, *lowest, env=ISOLATED)
    session.install(*(argument for group in groups for argument in ("--group", group)))
    tools = [tool for tool in TOOLS if tool not in packages]
    if tools:
        session.install("--no-sources", *(wheel(tool) for tool in tools))
    if resolution == "highest":
        share_compiled_modules(session.virtualenv.location)
    session.run("python", CHECK_INSTALLED, *packages, *lowest, "--tools", *tools, env=ISOLATED)


def project_file(package: str) -> Path:
    """Returns the pyproject.toml of an import name."""
    folder = "" if package == "estimator_core" else f"plugins/{package.removeprefix('estimator_')}"
    return ROOT / folder / "pyproject.toml"


def of_this_repository(requirements: Iterable[str]) -> set[str]:
    """Returns the import names of the packages of this repository that are required, also by each other."""
    found = {entry.split(">=")[0].replace("-", "_") for entry in requirements} & set(EVERYTHING)
    theirs = (nox.project.load_toml(project_file(package))["project"]["dependencies"] for package in found)
    return found.union(*map(of_this_repository, theirs))


def lower_bound(distribution: str) -> str:
    """Returns the lowest version of a distribution that the core's pyproject.toml supports."""
    dependencies = nox.project.load_toml(ROOT / "pyproject.toml")["project"]["dependencies"]
    (bound,) = (entry.partition(">=")[2] for entry in dependencies if entry.startswith(f"{distribution}>="))
    return bound.split(",")[0]


@contextmanager
def outside(session: nox.Session, *paths: str) -> Generator[dict[str, str | None]]:
    """Runs the body in a temporary folder that holds copies of `paths` and of the pytest configuration.

    Yields the environment for it. The modules of the tests can be imported, also by the processes that tests start.
    """
    with tempfile.TemporaryDirectory() as folder:
        for path in ["pyproject.toml", *paths]:
            source, target = ROOT / path, Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy2(source, target)
        with session.chdir(folder), shared_modules(session):
            yield {**ISOLATED, "PYTHONPATH": folder}


# As many processes as cores, up to four, because each imports jax and keeps its own compiled programs in memory.
PARALLEL = ("-n", str(min(os.cpu_count() or 1, 4)), "--dist=worksteal")


def pytest(
    session: nox.Session,
    *arguments: str,
    env: dict[str, str | None] = ISOLATED,
    runner: tuple[str, ...] = (),
    report: str = "",
) -> None:
    """Runs pytest and stores its counts for the summary of `.ci/run`. A session with several runs names each."""
    report = str(REPORTS / (re.sub(r"[^\w.-]+", "-", report or session.name).strip("-") + ".xml"))
    options = ["-q", "-p", "no:cacheprovider", f"--junit-xml={report}"]
    session.run(*runner, "pytest", *options, *arguments, *session.posargs, env=env, external=bool(runner))


# ---- Packages -------------------------------------------------------------------------------------------------------


@nox.session(python=OLDEST)
@nox.parametrize("resolution", RESOLUTIONS)
def core(session: nox.Session, resolution: str) -> None:
    """The core alone: only the tools as plugins, no neural-network library, and no import from the checkout."""
    install_wheels(session, "estimator_core", resolution=resolution, groups=("test",))
    with outside(session, "tests") as env:
        tests = ("tests",) if resolution == "highest" else ON_LOWEST_VERSIONS
        pytest(session, *PARALLEL, f"-m={QUICK_AND_ALONE}", *NEED_THE_CHECKOUT, *tests, env=env)


def define_plugin_session(plugin: str) -> None:
    folder = f"plugins/{plugin}"
    project = nox.project.load_toml(ROOT / folder / "pyproject.toml")
    own_tools = (f"{folder}/pyproject.toml:test",) if "test" in project.get("dependency-groups", {}) else ()
    extras = project["project"].get("optional-dependencies", {}).values()
    required = of_this_repository(sum(extras, project["project"]["dependencies"]))
    named = [package for package in EVERYTHING if package in required]  # the core, and what a plugin builds on

    @nox.session(name=f"plugin-{plugin}", python=OLDEST)
    @nox.parametrize("resolution", RESOLUTIONS)
    def alone(session: nox.Session, resolution: str) -> None:
        """This plugin with the core and the packages that its pyproject names, and the kit; nothing else."""
        install_wheels(session, *named, f"estimator_{plugin}", resolution=resolution, groups=("test", *own_tools))
        tests = lowest_tests(plugin) if resolution == "lowest-direct" else [f"{folder}/tests"]
        soon = COMPILED_SOON if plugin in MOSTLY_COMPILATION and resolution == "highest" else {}
        with outside(session, f"{folder}/tests", *SHARED) as env:
            pytest(session, *PARALLEL, f"-m={QUICK_AND_ALONE}", *tests, env={**env, **soon})


for _plugin in PLUGINS:
    define_plugin_session(_plugin)


@nox.session(python=[OLDEST, newer_python()])
def all(session: nox.Session) -> None:  # noqa: A001 - the name of the session
    """Everything together, with the libraries of the examples."""
    install_wheels(session, *EVERYTHING, groups=("libraries", "test"))
    # docs/export.md has the recipe that reads exports without this framework; tests/inputs runs a benchmark.
    copied = ("tests", "examples", "docs", "benchmarks", *(f"plugins/{plugin}/tests" for plugin in PLUGINS))
    with outside(session, *copied) as env:
        if session.python == OLDEST:  # tests that need only one package run in the sessions of that package
            chosen = ("-m=(plugins or libraries) and not slow", "tests", "plugins")
        else:
            chosen = ("-m=not slow", *ON_NEWER_PYTHON)
        pytest(session, *PARALLEL, *chosen, *NEED_THE_CHECKOUT, env=env)


@nox.session(python=OLDEST)
def wheels(session: nox.Session) -> None:
    """The built packages in an empty environment: command line, an example, a third-party plugin that takes roles."""
    session.install("--no-sources", *(wheel(package) for package in EVERYTHING))
    session.install("--group", "libraries")
    session.run("python", CHECK_INSTALLED, *EVERYTHING, env=ISOLATED)
    with outside(session, "examples"):
        for arguments in (
            ["--help"],
            ["plugins"],
            ["run", "examples/digits_convnet.py", "--hparams", "train_steps=20"],
        ):
            session.run("estimator", *arguments, env=ISOLATED)
    with tempfile.TemporaryDirectory() as folder, session.chdir(folder):
        shutil.copytree(ROOT / OF_OTHERS, "package")
        session.run(UV, "build", "--quiet", "--wheel", "--out-dir", ".", "package", external=True)
        session.install("--no-sources", *map(str, Path(folder).glob("*.whl")))
        session.run("python", "package/take_roles.py", env=ISOLATED)


@nox.session(python=OLDEST)
@nox.parametrize("kinds", [",".join(KINDS_IN_CUT), ",".join(OTHER_KINDS), *DEFINED])
def template(session: nox.Session, kinds: str) -> None:
    """Packages from `estimator new-plugin`: each is built, installed alone beside core and kit, tested and checked."""
    packages = ("estimator_core", *DEFINED.get(kinds, ()))
    session.install("--no-sources", *map(wheel, packages), *map(wheel, TOOLS))
    session.run("python", CHECK_INSTALLED, *packages, "--tools", *TOOLS, env=ISOLATED)
    for kind in kinds.split(","):
        name = f"acme-{kind.replace('_', '-')}"
        with tempfile.TemporaryDirectory() as folder, session.chdir(folder):
            session.run("estimator", "new-plugin", name, "--kind", kind, env=ISOLATED)
            session.run(UV, "build", "--quiet", "--wheel", "--out-dir", "wheels", name, external=True)
            (built,) = Path("wheels").glob("*.whl")
            session.install("--no-sources", f"{built.resolve()}[test]")  # its extra names the installed kit
            shutil.copytree(Path(name, "tests"), "tests")
            pytest(session, "--import-mode=importlib", "tests", report=f"template-{kind}")
            session.run("estimator", "plugins", "doctor", name, env=ISOLATED)
            session.run(UV, "pip", "uninstall", "--quiet", name, external=True)


@nox.session(python=OLDEST)
def object_stores(session: nox.Session) -> None:
    """Azure with azurite (needs npm), GCS with STORAGE_TESTBENCH=<its folder>; plugin-storage tests S3 with moto."""
    session.install("--no-sources", wheel("estimator_core"), wheel("estimator_storage", "gcs", "profiles"), wheel(KIT))
    session.install("--group", "test", "--group", "plugins/storage/pyproject.toml:test")
    session.run("python", CHECK_INSTALLED, "estimator_core", "estimator_storage", "--tools", KIT, env=ISOLATED)
    with outside(session, "plugins/storage/tests") as env:
        servers = {**azurite(session), **storage_testbench(session, OLDEST)}
        tests = [
            str(path) for name in ("azure", "gcs") for path in Path("plugins/storage/tests").glob(f"test_{name}*.py")
        ]
        pytest(session, *PARALLEL, *tests, env={**env, **servers})


# ---- Sources --------------------------------------------------------------------------------------------------------

UV_RUN = (UV, "run", "--quiet")


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Style, layout and the rules of the repository."""
    session.run(*UV_RUN, "ruff", "check", ".", external=True)
    session.run(*UV_RUN, "ruff", "format", "--check", ".", external=True)
    pytest(session, *PARALLEL, "tests/repo", "--ignore=tests/repo/test_import_contracts.py", runner=UV_RUN)


@nox.session(venv_backend="none")
def imports(session: nox.Session) -> None:
    """The floors of docs/architecture.md; and each contract fails on a violation put in by the test."""
    session.run(*UV_RUN, "lint-imports", "--no-cache", external=True)
    pytest(session, "tests/repo/test_import_contracts.py", runner=UV_RUN)


@nox.session(venv_backend="none")
def types(session: nox.Session) -> None:
    """Strict on the core and the plugins; the examples as a user's checker sees them. No source file is left out."""
    told = session.run(*UV_RUN, "pyright", "--stats", external=True, silent=True)
    folders = (ROOT / "estimator_core", ROOT / "examples", *ROOT.glob("plugins/*/src"))
    sources = sum(1 for folder in folders for _ in folder.rglob("*.py"))
    found = re.search(r"^Found (\d+) source files?", str(told), re.MULTILINE)
    checked = int(found[1]) if found else 0
    session.log(f"pyright found no error in {checked} files.")
    if checked < sources:
        session.error(f"pyright looked at {checked} files of {sources}: see `include` of [tool.pyright].")


@nox.session(venv_backend="none")
def docs(session: nox.Session) -> None:
    """Every Python block of the README and of docs/, and every doctest."""
    packages = ["estimator_core", *(f"plugins/{plugin}/src" for plugin in PLUGINS)]
    left_to_formats = [
        f"--ignore=plugins/exporters/src/estimator_exporters/{extra}" for extra, made in FORMATS.items() if made.extras
    ]
    left_to_formats += [f"--ignore=plugins/{module}" for module in IMPORT_ENGINES]
    chosen = ("tests/docs", "--doctest-modules", *packages, *left_to_formats)
    pytest(session, *PARALLEL, *chosen, env={**ISOLATED, **COMPILED_SOON}, runner=UV_RUN)


@nox.session(venv_backend="none", default=False)
def known(session: nox.Session) -> None:
    """Writes the core's table of known components from what the packages declare."""
    session.run(*UV_RUN, "python", str(ROOT / ".ci" / "known.py"), external=True)


@nox.session(venv_backend="none")
def mutants_cut(session: nox.Session) -> None:
    """A fixed part of `mutants`, spread over the rooms."""
    cut = ("--cut", str(CUT_OF_MUTANTS))
    session.run(*UV_RUN, "python", "-m", "tests.mutants.run", *cut, env=COMPILED_ONCE, external=True)


# ---- Long ones, not by default --------------------------------------------------------------------------------------


@nox.session(python=OLDEST, default=False)
@nox.parametrize("extra", list(FORMATS))
def formats(session: nox.Session, extra: str) -> None:
    """An export format: its suite where it is written, and exports of several models read without this framework."""
    exporters = wheel("estimator_exporters", *FORMATS[extra].extras)
    journeys = Path(f"plugins/exporters/tests/separate/check_{extra}_journeys.py").is_file()
    needed = ("cluster", "hooks", "inputs", "heads", "signatures", "warm_start", "canned_tabular")
    tabular = tuple(f"estimator_{plugin}" for plugin in needed)
    session.install(
        "--no-sources",
        wheel("estimator_core"),
        exporters,
        wheel("estimator_modules", "flax"),
        *map(wheel, tabular),
        wheel(KIT),
    )
    session.install("--group", "test")
    installed = ("estimator_core", "estimator_exporters", "estimator_modules", *tabular)
    session.run("python", CHECK_INSTALLED, *installed, "--tools", KIT, env=ISOLATED)
    folder = "plugins/exporters/tests/separate"
    with outside(session, "plugins/exporters/tests", "docs/export.md") as env:
        if FORMATS[extra].extras:
            doctests = ("--doctest-modules", "--pyargs", f"estimator_exporters.{extra}")
            suites = sorted(map(str, Path(folder).glob(f"suite_{extra}*.py")))
            pytest(session, *suites, *doctests, env=env)
        # Scripts in the same folder import each other.
        beside = str(Path(folder).absolute())
        session.run("python", f"{folder}/write_exports.py", extra, "exports", env={**env, "PYTHONPATH": beside})
        if journeys:
            session.run("python", f"{folder}/write_journeys.py", extra, "journeys", env={**env, "PYTHONPATH": beside})
        for place, packages in enumerate(filter(None, (FORMATS[extra].readers, FORMATS[extra].oldest))):
            session.run(UV, "venv", "--quiet", "--python", OLDEST, f"reader_{place}", external=True)
            session.run(UV, "pip", "install", "--quiet", "--python", f"reader_{place}", *packages, external=True)
            document = ("docs/export.md",) if extra == "stablehlo" else ()
            reader = str(Path(f"reader_{place}", "bin", "python").absolute())
            alone = {**ISOLATED, "PYTHONPATH": beside}
            session.run(reader, f"{folder}/check_{extra}.py", "exports", *document, env=alone, external=True)
            if journeys:
                session.run(reader, f"{folder}/check_{extra}_journeys.py", "journeys", env=alone, external=True)


@nox.session(python=OLDEST, default=False)
def export_matrix(session: nox.Session) -> None:
    """Every kind of model in every format, read by the oldest and the newest reader; writes docs/export_matrix.md.

    Rows stay in .nox until their inputs change, so a call continues after the rows of an earlier call. With
    `-- --seconds N` no row begins later than that. With `-- --cut` only a part runs, and is compared with the page.
    """
    cut = ("--cut",) if "--cut" in session.posargs else ()
    seconds = session.posargs[session.posargs.index("--seconds") + 1] if "--seconds" in session.posargs else "inf"
    plugins = ("hooks", "inputs", "heads", "modules", "signatures", "warm_start", "canned_tabular", "canned_bert")
    packages = ["estimator_core", *(f"estimator_{plugin}" for plugin in plugins)]
    # TensorFlow for processors: the name in the extra installs the same modules from a larger file.
    session.install(
        "--no-sources", *map(wheel, packages), wheel("estimator_exporters", *FORMATS["onnx"].extras), NEWEST_TENSORFLOW
    )
    session.install("--group", "libraries")
    session.run("python", CHECK_INSTALLED, *packages, "estimator_exporters", env=ISOLATED)
    readers = {
        "saved_model": (("tensorflow-cpu==2.15.1",), (NEWEST_TENSORFLOW,)),
        "onnx": (FORMATS["onnx"].oldest, FORMATS["onnx"].readers),
        "stablehlo": (FORMATS["stablehlo"].readers,),
    }
    with outside(session, "tests/export_matrix") as env:
        kept = ("tests.export_matrix.kept", str(ROOT / ".nox" / "matrix_rows"))
        cells = session.run("python", "-m", *kept, *cut, env=env, silent=True).strip()
        pace = ("--jobs", str(min(os.cpu_count() or 1, 4)), "--seconds", seconds)
        session.run("python", "-m", "tests.export_matrix.write", cells, *pace, *cut, env=env)
        script = str(Path("tests", "export_matrix", "read.py").absolute())
        for form, sets in readers.items():
            for place, wanted in enumerate(sets):
                name = f"{form}_{place}"
                session.run(UV, "venv", "--quiet", "--python", OLDEST, name, external=True)
                session.run(UV, "pip", "install", "--quiet", "--python", name, *wanted, external=True)
                reader = str(Path(name, "bin", "python").absolute())
                session.run(reader, script, form, cells, seconds, env=ISOLATED, external=True)
        page = (cells, str(ROOT / "docs" / "export_matrix.md"), *(("--compare",) if cut else ()))
        session.run("python", "-m", "tests.export_matrix.page", *page, env=env)


@nox.session(python=OLDEST, default=False)
@nox.parametrize("form", ["http", "grpc"])
def tritonclient(session: nox.Session, form: str) -> None:
    """A third-party client, in an environment of its own: every datatype, by HTTP and by gRPC."""
    session.install("--no-sources", *map(wheel, ("estimator_core", "estimator_signatures", "estimator_exporters")))
    session.install("--group", "test")
    folder = "plugins/exporters/tests/separate"
    with outside(session, "plugins/exporters/tests") as env:
        session.run(UV, "venv", "--quiet", "--python", OLDEST, "client", external=True)
        packages = ("tritonclient[http,grpc]", "ml_dtypes")
        session.run(UV, "pip", "install", "--quiet", "--python", "client", *packages, external=True)
        client = str(Path("client", "bin", "python").absolute())
        check = "check_tritonclient.py" if form == "http" else "check_tritonclient_grpc.py"
        session.run("python", f"{folder}/serve_echo.py", form, client, f"{folder}/{check}", env=env)


@nox.session(python=OLDEST, default=False)
def input_forms(session: nox.Session) -> None:
    """Data from libraries that the development environment lacks: datasets, ADBC, SQLAlchemy, DuckDB."""
    session.install("--no-sources", wheel("estimator_core"), wheel("estimator_inputs"))
    session.install("--group", "test")
    session.install("adbc-driver-sqlite", "datasets", "duckdb", "pandas", "sqlalchemy")
    with outside(session, "plugins/inputs/tests") as env:
        session.run("python", "-m", "pytest", "-q", "plugins/inputs/tests/separate/check_forms.py", env=env)


@nox.session(python=OLDEST, default=False)
def tpu_aot(session: nox.Session) -> None:
    """Training steps that libtpu compiles for absent TPU slices."""
    compile_without_device(session, "backends_tpu", "tpu", "compile_for_slices.py")


@nox.session(python=OLDEST, default=False)
def gpu_aot(session: nox.Session) -> None:
    """Training steps that jax's CUDA plugin (4 GB of packages) compiles for absent GPUs."""
    compile_without_device(session, "backends_gpu", "cuda", "compile_for_cards.py")


def compile_without_device(session: nox.Session, plugin: str, extra: str, tests: str) -> None:
    """Runs the tests of a backend that need its compiler but no device."""
    packages = [wheel(package, *([extra] if package == f"estimator_{plugin}" else [])) for package in EVERYTHING]
    session.install("--no-sources", *packages)
    session.install("--group", "libraries", "--group", "test")
    session.run("python", CHECK_INSTALLED, *EVERYTHING, env=ISOLATED)
    folder = f"plugins/{plugin}/tests/separate"
    with outside(session, folder, "examples") as env:
        pytest(session, f"{folder}/{tests}", env=env)


@nox.session(python=OLDEST, default=False)
def parity(session: nox.Session) -> None:
    """New recordings with the real tf.estimator, in an environment of its own, equal the committed recordings."""
    session.install("tensorflow-cpu==2.15.1")
    session.run("python", "tests/parity/rerecord.py", "--check", *session.posargs)


# The session uses pip, which looks up PyTorch in the index of its configuration.
@nox.session(python=OLDEST, default=False, venv_backend="venv")
@nox.parametrize("library", ["transformers", "tensorflow"])
def bert_parity(session: nox.Session, library: str) -> None:
    """New recordings of BERT with transformers and TensorFlow equal the committed recordings."""
    folder = ROOT / "plugins" / "canned_bert" / "tests"
    if library == "tensorflow":
        session.install("tensorflow-cpu==2.15.1")
        session.run("python", str(folder / "record_tensorflow.py"), "--check")
        return
    session.install("torch==2.13.0", "transformers>=4.57,<5", "safetensors>=0.5")
    session.run("python", str(folder / "record_transformers.py"), "--check")
    session.run("python", str(folder / "record_tokens.py"), "--check")


@nox.session(venv_backend="none", default=False)
def proofs(session: nox.Session) -> None:
    """Ported programs against the originals, which run with real TensorFlow 2.15.1 and 1.15.0."""
    session.run(*UV_RUN, "python", str(ROOT / ".ci" / "proofs.py"), *session.posargs, external=True)


@nox.session(venv_backend="none", default=False)
def faults(session: nox.Session) -> None:
    """Runs killed at random steps, torn files, full disks: the slow tests."""
    pytest(session, "-m=slow", "tests", "plugins", runner=UV_RUN)


@nox.session(venv_backend="none", default=False)
def simulation(session: nox.Session) -> None:
    """A hundred thousand pairs of simulated faults in a model_dir, and 200 kills and freezes of real processes."""
    session.run(*UV_RUN, "python", "-m", "tests.journal.explore", "100000", *session.posargs, external=True)
    session.run(*UV_RUN, "python", "-m", "tests.journal.explore", "20000", "--faults", "3", external=True)
    session.run(*UV_RUN, "python", "-m", "tests.journal.real_processes", "200", external=True)


@nox.session(venv_backend="none", default=False)
def browser(session: nox.Session) -> None:
    """Pages of reports, opened in a real browser."""
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        session.skip("no browser is installed: Debian has it as chromium")
    pytest(session, "plugins/report/tests/test_page.py", runner=UV_RUN)


@nox.session(venv_backend="none")
def notebook(session: nox.Session) -> None:
    """A notebook executed by a real kernel: progress, curve, tables, an interrupt."""
    runner = (*UV_RUN, "--with", "ipykernel>=6.29,nbclient>=0.10", "python", "-m")
    pytest(session, "plugins/hooks/tests/separate/check_notebook.py", runner=runner)


@nox.session(venv_backend="none", default=False)
def mutants(session: nox.Session) -> None:
    """Breaks each rule once and fails where no test notices: `-- --only ROOM_OR_NAME`, `-- --list`."""
    session.run(*UV_RUN, "python", "-m", "tests.mutants.run", *session.posargs, env=COMPILED_ONCE, external=True)


@nox.session(venv_backend="none", default=False)
def bench(session: nox.Session) -> None:
    """Workloads beside bare loops and peers: `-- NAME [options]` runs one; without a name, all run (_suite.py)."""
    folder = ROOT / "benchmarks"
    named = [argument for argument in session.posargs[:1] if not argument.startswith("-")]
    workloads = sorted(path.stem for path in folder.glob("[!_]*.py"))
    for name in named:
        if name not in workloads:
            session.error(f"There is no workload {name!r}. There are: {', '.join(workloads)}")
    script = folder / f"{(named or ['_suite'])[0]}.py"
    session.run(*UV_RUN, "python", str(script), *session.posargs[len(named) :], external=True)


HOUSE = House(OLDEST, wheel, outside, pytest)
define_lowest_session(HOUSE, install_wheels, PLUGINS, (*PARALLEL, f"-m={QUICK_AND_ALONE}"), SHARED)
define_export_sessions(HOUSE)
define_launcher_sessions(HOUSE)
define_card_session(HOUSE, EVERYTHING, ROOT)
define_kit_sessions(HOUSE, [*KINDS_IN_CUT, *OTHER_KINDS, *DEFINED])
