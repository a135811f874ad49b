"""What linters cannot see: the habits of this code base, each stated once and checked."""

from __future__ import annotations

import ast
import re
import subprocess
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

from tests.cases import each_case, for_each
from tests.conftest import BUDGET, beyond_budget

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src"
LINES_MAX = 450
BASELINE = 39
"""The number of the migration that a new store begins with; the ones before it became one with it."""

MODULES = sorted(SRC.rglob("*.py"))
OF_PYTHON = sorted(
    path for folder in ("src", "tests", "benchmarks", "scripts") for path in (ROOT / folder).rglob("*.py")
)

_VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "manager", "context", "common", "misc"})
_LATER = re.compile("|".join(rf"\b{word}\b" for word in ("TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK")))
_REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("repo1", "maven", "org"),
        ("repo", "maven", "apache", "org"),
        ("registry", "npmjs", "org"),
    )
)
_WORKPLACES = re.compile(
    r"(?<![\w.])/(?:work|home/\w+|Users/\w+|root)/|/tmp/" r"w\b|\bshared/\w+\.md\b|\brecipes\.md\b"
)
_SUPPRESSION = re.compile(r"#\s*(?:noqa|type:\s*ignore)\b.*")
_SUPPRESSED_WELL = re.compile(
    r"#\s*(?:noqa:\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*|type:\s*ignore\[[a-z-]+(?:,\s*[a-z-]+)*\])\s*(?:-|#)\s*[\w`'(].*"
)

DELETIONS = {
    "icewright/work/launch/spark_submit.py": "the private folders of applications that have ended, made here",
    "icewright/catalogs/storage/hdfs.py": "what lies in a quarantine, told to be the file that went there",
    "icewright/actions/remove_files/adapters/local_quarantine.py": "names of files that are back or purged",
    "icewright/actions/remove_files/adapters/s3_quarantine.py": "what the Deleter says, by etag; what it has",
    "icewright/terminal/address.py": "a server takes its own address away when it stops, and the temporary name of a "
    "secret that has just been linked to its own",
    "icewright_spark/optimizer/application.py": "the settings that it was started with, which have secrets",
    "icewright_spark/parquet/storage.py": "the part of a new file that could not be written to its end, by its inode",
    "icewright_spark/iceberg/own_outputs.py": "what an attempt wrote itself, if nothing of its commit was ever sent",
    "icewright_spark/iceberg/free_space.py": "the file by which it sees whether a metadata directory takes one",
    "icewright_spark/reports/outbox.py": "reports of commits that were told, by the names that it gives them itself",
    "icewright/demo/folder.py": "the demo removes the folder that it made itself, known by its mark",
}
"""The only places that may delete a file, each with its reason. Only the Deleter reaches those near a table."""

_DELETING = frozenset({"unlink", "rmtree", "rmdir", "removedirs", "delete_object", "delete_objects"})
_DELETING_BY_IO = frozenset({"delete", "deleteFile", "deleteFiles", "deletePrefix"})
_AN_IO = re.compile(r"(?:^|[._])(?:io|file_?io|fs|filesystem|client)(?:\(.*\))?$", re.IGNORECASE)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(source(path))


@cache
def source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def walk(module: ast.Module) -> tuple[ast.AST, ...]:
    """All that a module is made of, found once for all checks."""
    return tuple(ast.walk(module))


def naming(paths: Iterable[Path], *words: str) -> list[Path]:
    """The modules with one of these words in their text: no other one needs a closer look for them."""
    return [path for path in paths if any(word in source(path) for word in words)]


def within(path: Path) -> str:
    return str(path.relative_to(SRC))


def tracked() -> list[Path]:
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)  # noqa: S607 - git as it is found
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@cache
def texts() -> dict[Path, str]:
    """All tracked text files."""
    found = {}
    for path in tracked():
        content = path.read_bytes()
        if b"\0" not in content:
            found[path] = content.decode("utf-8")
    return found


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in walk(tree(path)) if isinstance(node, ast.Call))


def test_modules_are_small() -> None:
    long = {within(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: lines for name, lines in long.items() if lines > LINES_MAX} == {}


MODULES_MAX = 15
MIGRATIONS = "icewright/store/migrations/versions"  # one module a change of the schema, for ever


def test_no_folder_is_crowded() -> None:
    assert crowded(MODULES) == []


def crowded(modules: list[Path]) -> list[str]:
    """What to do about folders that have more modules than they may."""
    counts = Counter(within(path.parent) for path in modules if path.name != "__init__.py")
    del counts[MIGRATIONS]
    return [
        f"{folder} has {count} modules and may have {MODULES_MAX}: "
        "extend a module, or put those of one subject into a folder of their own"
        for folder, count in counts.items()
        if count > MODULES_MAX
    ]


def test_the_check_of_folders_would_notice() -> None:
    modules = [SRC / "a/__init__.py", *(SRC / f"a/m{number}.py" for number in range(MODULES_MAX + 1))]
    assert crowded(modules[:-1]) == []
    assert [text[:40] for text in crowded(modules)] == ["a has 16 modules and may have 15: extend"]


def test_every_checker_is_held_to_its_contract() -> None:
    """Those that judge plans know the domain and each other alone; the contract itself is import-linter's."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (contract,) = [one for one in contracts if one["name"] == "Checkers never import planners"]
    checkers = {dotted(path) for path in MODULES if checks(path)}
    assert set(contract["source_modules"]) == checkers
    known = {module for path in MODULES if checks(path) for module in imported(path)}
    known -= checkers | {module for module in known if module.split(".")[1] in ("core", "model")}
    assert known == {"icewright.ownership.model"}


def checks(path: Path) -> bool:
    """Whether this module judges plans."""
    judges = path.stem.startswith("check") or path.parent.name == "check"
    return judges and path.name != "__init__.py" and path.is_relative_to(SRC / "icewright")


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts)


PACKAGES = ("icewright.", "icewright_spark.")


def imported(path: Path) -> Iterator[str]:
    """The modules of both packages that a module imports from, wherever in it."""
    for node in walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (source := node.module or "").startswith(PACKAGES):
            folder = SRC / source.replace(".", "/")
            for alias in node.names:
                yield f"{source}.{alias.name}" if (folder / f"{alias.name}.py").exists() else source


def test_every_room_has_its_place() -> None:
    """Which rooms know which is import-linter's; that none is forgotten there is looked at here."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (contract,) = [one for one in contracts if one["name"] == "Imports between rooms only point down"]
    placed = {room for layer in contract["layers"] for room in layer.split(" | ")}
    folders = {path.name for path in (SRC / "icewright").iterdir() if (path / "__init__.py").exists()}
    actions = {path.name for path in (SRC / "icewright/actions").iterdir() if (path / "__init__.py").exists()}
    assert placed == folders - {"actions"} | {f"actions.{name}" for name in actions}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also by imports within functions and for types alone; of rooms the contract on layers says so."""
    graph = {dotted(path).removesuffix(".__init__"): set(imported(path)) for path in MODULES}
    assert list(TopologicalSorter(graph).static_order())


OF_OTHER_ACTIONS = {
    "expire_data.evidence": {"rewrite_manifests.evidence"},
    "expire_snapshots.iceberg": {"undo.expiry_undo"},
    "expire_snapshots.plan": {"undo.second_table"},
}
"""What actions know of each other. This list only gets shorter."""


def test_actions_know_little_of_each_other() -> None:
    actions = "icewright.actions."
    found: dict[str, set[str]] = {}
    for path in MODULES:
        module = dotted(path).removeprefix(actions)
        for other in imported(path) if dotted(path).startswith(actions) else ():
            if other.startswith(actions) and other.split(".")[2] != module.split(".")[0]:
                found.setdefault(module, set()).add(other.removeprefix(actions))
    assert found == OF_OTHER_ACTIONS


LIBRARIES = {
    (
        "fastapi",
        "pydantic",
        "starlette",
    ): r"(.*[./](([a-z]+_)?api|lost_tables|lookups|streams|metrics_reports))|(identity|web|server)/.*",
    (
        "sqlalchemy",
        "alembic",
    ): r"store(_admin)?/.*|work/store/.*|server/.*|.*[/_](sql|schema|store|pruning|cursors|submitters|findings)"
    r"|catalogs/.*",
    ("pyiceberg", "fastavro"): r"catalogs/.*|demo/.*",
    (
        "typer",
        "rich",
    ): r"(.*/)?([a-z]+_)?cli|(terminal|app|demo)/.*|tables/(scan|observations)|work/tasks/attempts"
    r"|maintenance/procedures",
}
"""Which modules may use a library, as patterns of their paths: a floor of each room, or rooms that are about it."""


@each_case(("libraries", "where"), list(LIBRARIES.items()))
def test_libraries_stay_on_their_floor(libraries: tuple[str, ...], where: str) -> None:
    using = [
        str(path.relative_to(SRC / "icewright").with_suffix(""))
        for path in MODULES
        if path.is_relative_to(SRC / "icewright")
        for node in walk(tree(path))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in libraries)
        or (isinstance(node, ast.Import) and any(alias.name.split(".")[0] in libraries for alias in node.names))
    ]
    assert using
    assert [name for name in sorted(set(using)) if not re.fullmatch(where, name)] == []


def test_every_module_says_why_it_exists() -> None:
    for_each(MODULES, says_why_it_exists)


def says_why_it_exists(path: Path) -> None:
    first = (ast.get_docstring(tree(path)) or "").split("\n\n")[0].strip()
    assert len(first.split()) >= 4, f"{within(path)}: {first!r} is no sentence"
    assert first[0].isupper() or not first[0].isalpha() or first.split()[0].islower()
    assert first.endswith((".", "!", "?", ":")), f"{within(path)}: {first!r} does not end"


def test_modules_are_named_for_what_they_are_about() -> None:
    parts = {part for path in MODULES for part in (*path.relative_to(SRC).parts[:-1], path.stem)}
    assert parts & _VAGUE_NAMES == set()


RETIRED = frozenset(
    {
        "tidings",
        "pulse",
        "hurry",
        "likeness",
        "whys",
        "latecomers",
        "endings",
        "worded",
        "firsts",
        "patience",
        "hands",
        "keeper",
        "keepers",
        "seat",
        "unfit",
        "alone",
        "passing",
        "opinion",
        "opinions",
        "seats",
        "tally",
        "tame",
        "telling",
        "told",
        "nobody",
        "somebody",
        "anybody",
        "whoever",
        "anew",
        "experience",
    }
)
"""Words that say nothing to somebody who reads one of them for the first time; the glossary has better ones."""
RETIRED_PAIRS = frozenset({"put off", "by itself", "plan beside", "store away", "storage away"})
RETIRED_FUNCTIONS = frozenset({"of", "yes", "wanted", "few", "tame", "begin"})
"""Names of functions without their noun."""
LEFT = {
    "icewright/core/servers.py: nobody_leads",
    "icewright/observation/outages.py: STORAGE_AWAY_MAX",
    "icewright/plans/policy_digest.py: READ_ANEW",
    "icewright/recommendations/ledger.py: BY_ITSELF",
    "icewright/work/autotune/own_optimizers.py: NOBODY",
    "icewright/work/tasks/retry.py: PUT_OFF_BASE_MS",
    "icewright/work/tasks/retry.py: PUT_OFF_MAX_MS",
    "icewright/work/tasks/retry.py: put_off_ms",
    "icewright/work/tasks/task_throughput.py: experience",
}
"""Names that are still to be replaced. This list only gets shorter."""


def identifiers(module: ast.Module) -> Iterator[str]:
    """The names of classes, and of functions and values at the top level that other modules may use."""
    for node in walk(module):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.AnnAssign(ast.Name(name)):
                yield name
            case ast.Assign(targets):
                yield from (one.id for one in targets if isinstance(one, ast.Name))


_PRODUCT = ("ZooKeeper", "Zookeeper")
"""A name that others gave, and the same as one word."""


def retired(name: str) -> bool:
    """Whether a name that others use has such a word."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name.replace(*_PRODUCT))]
    pairs = {" ".join(pair) for pair in pairwise(words)}
    return not name.startswith("_") and bool(RETIRED & set(words) or RETIRED_PAIRS & pairs or name in RETIRED_FUNCTIONS)


def test_the_campaign_runs_what_is_left_to_it() -> None:
    """It leaves out tests with real processes but for files that it names: nothing else runs what CI leaves to it."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ncampaign:")[2].partition("\n\n")[0]
    left, real = (
        re.compile(r"^@pytest\.mark\.campaign$", re.MULTILINE),
        re.compile(r"^(pytestmark = .*|@pytest\.)mark\.e2e\b", re.MULTILINE),
    )
    both = [path for path, text in texts().items() if left.search(text) and real.search(text)]
    assert len(both) >= 3
    for path in both:
        place = path.relative_to(ROOT)
        assert {str(place), str(place.parent)} & {*recipe.split()}, f"{place} is run by nobody"


def test_retired_words_name_nothing() -> None:
    found = {f"{within(path)}: {name}" for path in MODULES for name in identifiers(tree(path)) if retired(name)}
    assert found - LEFT == set()
    assert [path.stem for path in MODULES if retired(path.stem)] == []


@each_case(
    "code",
    [
        *("class LeaseKeeper: ...", "async def likeness(path): ...", "PATIENCE_S: Final = 3", "first_whys = 1"),
        *("def require_somebody(): ...", "PUT_OFF_MS: Final = 3", "def is_by_itself(): ...", "def of(files): ..."),
    ],
)
def test_the_check_of_retired_words_would_notice(code: str) -> None:
    assert [retired(name) for name in identifiers(ast.parse(code))] == [True]
    assert not retired("Housekeeper")
    assert not retired("ZooKeeperElection")


FILLERS = re.compile(
    r"(?i)\b(?:nobody|somebody|anybody|whoever|by itself|by themselves|anew|beside|lets it|let it|what is to go"
    r"|(?:is|are) over(?= |[.,;:]|$)(?! \d)|goes|told|came to nothing|comes? to nothing|for good|all the same)\b"
)
"""Phrases that no message needs: who does what is said in one sentence, in the present tense."""
REFERENCES = ("docs/api.md", "docs/cli.md", "docs/configuration.md")
"""What is generated from docstrings and help texts."""


def messages(module: ast.Module) -> Iterator[str]:
    """The texts of code that people may read: of more than one word, and no docstring."""
    silent = {id(node.value) for node in walk(module) if isinstance(node, ast.Expr)}
    yield from (
        node.value
        for node in walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent
    )


def test_messages_say_it_plainly() -> None:
    said = [
        f"{within(path)}: {hit[0]!r} in {text[:80]!r}"
        for path in MODULES
        for text in messages(tree(path))
        if " " in text and (hit := FILLERS.search(text))
    ]
    for name in REFERENCES:
        prose = re.sub(r"`[^`\n]*`", "", (ROOT / name).read_text("utf-8"))
        said += [f"{name}: {hit[0]!r}" for hit in FILLERS.finditer(prose)]
    assert said == []


@each_case(
    "text",
    ["nobody approved it", "planned anew", "snapshots expire by themselves", "the window is over", "the tag goes"],
)
def test_the_check_of_messages_would_notice(text: str) -> None:
    code = f'def f():\n    """{text}"""\n    raise Conflict(f"{{name}}: {text}")'
    assert [bool(FILLERS.search(one)) for one in messages(ast.parse(code)) if " " in one] == [True]


PLAIN_ROOMS = (
    *("api_client", "client", "configuration", "explain", "footprint", "model/queries", "observation", "queries"),
    "tables",
)
"""Rooms whose docstrings and comments are held to the same as messages. This list only gets longer."""
PROSE_FILLERS = re.compile(
    r"(?i)\b(?:nobody|somebody|anybody|whoever|by itself|by themselves|anew|lets it|let it|what is to go|told"
    r"|came to nothing|comes? to nothing)\b"
)


def prose(path: Path) -> Iterator[str]:
    """The docstrings and comments of a module."""
    yield from (text for _, text in comments(path))
    for node in walk(tree(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def test_docstrings_of_plain_rooms_say_it_plainly() -> None:
    rooms = [SRC / "icewright" / room for room in PLAIN_ROOMS]
    modules = [path for path in MODULES if any(path.is_relative_to(room) for room in rooms)]
    assert len(modules) > len(rooms)
    assert [
        f"{within(path)}: {hit[0]!r}" for path in modules for text in prose(path) if (hit := PROSE_FILLERS.search(text))
    ] == []


def test_the_check_of_docstrings_would_notice(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""Read anew."""\n\nVALUE = "nobody"  # whoever asks\n"""Its value."""\n')
    assert [bool(PROSE_FILLERS.search(text)) for text in prose(module)] == [True, True, False]


def test_nothing_is_put_off_in_a_comment() -> None:
    found = [(str(path.relative_to(ROOT)), hit[0]) for path, text in texts().items() for hit in _LATER.finditer(text)]
    assert found == []


def test_no_registry_host_is_named() -> None:
    assert [(path, host) for path, text in texts().items() for host in _REGISTRIES if host in text.lower()] == []


def test_nobodys_machine_and_private_notes_are_named() -> None:
    found = [
        (str(path.relative_to(ROOT)), hit[0]) for path, text in texts().items() for hit in _WORKPLACES.finditer(text)
    ]
    assert found == []


def comments(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8") as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def test_every_suppression_has_a_code_and_a_reason() -> None:
    bad = [
        f"{path.relative_to(ROOT)}:{number}: {hit[0]}"
        for path in naming(OF_PYTHON, "noqa", "type:")
        for number, comment in comments(path)
        if (hit := _SUPPRESSION.search(comment)) and not _SUPPRESSED_WELL.fullmatch(hit[0])
    ]
    assert bad == []


@each_case(
    ("line", "is_good"),
    [
        ("# noqa: S105 - a counter's name, not a secret", True),
        ("# type: ignore[arg-type]  # one of the results", True),
        ("# noqa: S105", False),
        ("# noqa", False),
        ("# type: ignore # because", False),
        ("# type: ignore[misc]", False),
    ],
)
def test_the_check_of_suppressions_would_notice(line: str, *, is_good: bool) -> None:
    assert bool(_SUPPRESSED_WELL.fullmatch(line)) is is_good


def test_nothing_is_mocked() -> None:
    using = [
        str(path.relative_to(ROOT))
        for path in naming(OF_PYTHON, "unittest", "mock")
        for node in walk(tree(path))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("unittest", "mock"))
        or (
            isinstance(node, ast.Import)
            and any(alias.name.split(".")[0] in ("unittest", "mock") for alias in node.names)
        )
    ]
    assert using == []


def test_one_place_builds_spark_sessions() -> None:
    building = {
        str(path.relative_to(ROOT))
        for path in naming(OF_PYTHON, "getOrCreate", "builder")
        for node in walk(tree(path))
        if isinstance(node, ast.Attribute)
        and (
            node.attr == "getOrCreate" or (node.attr == "builder" and ast.unparse(node.value).endswith("SparkSession"))
        )
    }
    assert building == {"src/icewright_spark/session/session.py"}


def test_one_place_commits_to_iceberg() -> None:
    committing = {
        (within(path), "" if within(path) == "icewright_spark/iceberg/commits/commit.py" else ast.unparse(call.func))
        for path in MODULES
        for call in calls(path)
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("commit", "commitTransaction", "commit_table")
    }
    offsets = ("icewright/events/sources/kafka.py", "self._consumer.commit")  # of a topic, which is no table
    history = ("icewright/catalogs/own_tables.py", "catalog.commit_table")  # of our own rows (0052)
    assert committing == {("icewright_spark/iceberg/commits/commit.py", ""), offsets, history}


def test_one_place_says_that_knowledge_is_complete() -> None:
    saying = {
        within(path)
        for path in naming(MODULES, "Complete")
        for call in calls(path)
        if ast.unparse(call.func).split(".")[-1] == "Complete"
    }
    assert saying == {"icewright/core/completeness.py"}


def test_one_place_makes_plans_of_deletes() -> None:
    making = {
        within(path)
        for path in naming(MODULES, "DeletePlan")
        for call in calls(path)
        if ast.unparse(call.func).split(".")[-1] == "DeletePlan"
    }
    assert making == {"icewright/model/actions/deletion.py"}


THE_DOOR = {
    "icewright/catalogs/storage/hdfs.py": "the door itself, on HDFS",
    "icewright/actions/remove_files/adapters/local_quarantine.py": "the door itself, on local disks",
    "icewright/actions/remove_files/adapters/opened.py": "the doors of one catalog's storages, by scheme",
    "icewright/actions/remove_files/adapters/s3_quarantine.py": "the door itself, on S3",
    "icewright/server/control_wiring.py": "opens the doors of each catalog, and hands them on",
    "icewright/actions/remove_files/quarantine_port.py": "says what the door is",
    "icewright/actions/remove_files/removals_port.py": "hands the doors of a catalog on, together with its other ports",
    "icewright/actions/remove_files/deleter.py": "the only one that opens it",
    "icewright/server/liveness.py": "hands it on to the Deleter, with a sign of life at each call",
}
"""Who names the door through which files go, each with its reason."""

_DOOR_CLASS = re.compile(r"(?:[A-Z]\w*)?Quarantine")
_DOOR_MODULE = re.compile(r"\bremove_files(?:\.\w+)*?\.(?:\w+_)?quarantine(?:_port)?(?:\.|\Z)")


def names_the_door(module: ast.Module, package: str = "icewright.actions.undo") -> bool:
    """Whether code of a package names the port, a class that is one, or a module with such, in whatever way."""
    return any(_DOOR_CLASS.fullmatch(name) or _DOOR_MODULE.search(name) for name in named(module, package))


def named(module: ast.Module, package: str) -> Iterator[str]:
    """Names, with dots where they have any: of imports in full, of attributes, of classes, of what texts import."""
    for node in walk(module):
        match node:
            case ast.Import(aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(source, aliases, level):
                above = package.split(".")[: len(package.split(".")) + 1 - level] if level else []
                base = ".".join([*above, *([source] if source else [])])
                yield from (f"{base}.{alias.name}" for alias in aliases)
                yield from (alias.name for alias in aliases)
            case ast.ClassDef(name=name) | ast.Name(name) | ast.Constant(str(name)):
                yield name
            case ast.Attribute(attr=attribute):
                yield attribute
                yield ast.unparse(node)


def test_only_the_deleter_has_the_door_through_which_files_go() -> None:
    """Adapters are that door; the service alone uses it. Who joins the two is to be listed as well."""
    found = {within(path) for path in MODULES if names_the_door(tree(path), ".".join(path.relative_to(SRC).parts[:-1]))}
    assert found == set(THE_DOOR)


@each_case(
    "code",
    [
        "from icewright.actions.remove_files.quarantine_port import Quarantine",
        "from icewright.actions.remove_files.quarantine_port import Quarantine as Q",
        "from icewright.actions.remove_files import quarantine_port",
        "from icewright.actions.remove_files import quarantine_port as q",
        "import icewright.actions.remove_files.quarantine_port",
        "import icewright.actions.remove_files.quarantine_port as q",
        "import icewright.actions.remove_files as remove_files\nremove_files.quarantine_port",
        "from ..remove_files import quarantine_port",
        "from ..remove_files.quarantine_port import *",
        "importlib.import_module('icewright.actions.remove_files.quarantine_port')",
        "from icewright.actions.remove_files.adapters.opened import CatalogQuarantine",
        "from icewright.actions.remove_files.adapters import opened\nopened.CatalogQuarantine(entry, roots)",
        "from icewright.actions.remove_files.adapters.opened import *\nCatalogQuarantine(entry, roots)",
        "import icewright.actions.remove_files.adapters.s3_quarantine as s3",
        "from icewright.actions.remove_files.adapters import local_quarantine as l",
        "from icewright.catalogs.storage.hdfs import HdfsQuarantine as H",
        "from tests.doubles.quarantine import MemoryQuarantine",
        "getattr(opened, 'CatalogQuarantine')",
    ],
)
def test_the_check_of_the_door_would_notice(code: str) -> None:
    assert names_the_door(ast.parse(code))


@each_case(
    "code",
    [
        "Step.QUARANTINE",
        "IntentState.QUARANTINED",
        "self._quarantine",
        "settings.quarantine",
        "Reason('in-quarantine', 'it is in a quarantine')",
    ],
)
def test_words_about_quarantines_are_not_the_door(code: str) -> None:
    assert not names_the_door(ast.parse(code))


def deletions(module: ast.Module) -> list[str]:
    """Calls that delete files or directories."""
    return [ast.unparse(node.func) for node in walk(module) if isinstance(node, ast.Call) and deletes(node.func)]


def deletes(function: ast.expr) -> bool:
    match function:
        case ast.Name(name):
            return name in _DELETING
        case ast.Attribute(ast.Name("os"), "remove"):
            return True
        case ast.Attribute(owner, name):
            return name in _DELETING or (name in _DELETING_BY_IO and bool(_AN_IO.search(ast.unparse(owner))))
        case _:
            return False


def test_c1_w12_nothing_deletes_files_but_the_listed_places() -> None:
    assert {within(path) for path in MODULES if deletions(tree(path))} == set(DELETIONS)


def said(words: re.Pattern[str]) -> list[str]:
    """The names and texts of the code that have one of these words, with their modules."""
    return [f"{within(path)}: {text}" for path in MODULES for text in spelled(tree(path)) if words.search(text)]


def spelled(module: ast.Module) -> Iterator[str]:
    for node in walk(module):
        match node:
            case ast.Name(text) | ast.Attribute(attr=text) | ast.Constant(str(text)) | ast.alias(text):
                yield text


_DROPPING = re.compile(
    r"(?i)\bdrop_?(?:table|view|namespace)|\bdrop (?:table|view|namespace)|purge_?table|purge_?requested"
)
_REMOVING_SPECS = re.compile(
    r"(?i)clean_?expired_?metadata|remove[-_]?(?:unused_?)?(?:schemas|(?:partition[-_]?)?specs)"
)


def test_x5_no_table_is_ever_dropped_or_purged() -> None:
    told_of = "icewright/events/sources/hive_notifications.py: DROP_TABLE"  # a kind of notification that is read
    assert said(_DROPPING) == [told_of]


def test_e10_specs_and_schemas_are_never_removed() -> None:
    assert said(_REMOVING_SPECS) == []


@each_case(
    "code",
    [
        "catalog.dropTable(name, True)",
        "catalog.drop_table(name)",
        "catalog.purge_table(name)",
        "spark.sql('DROP TABLE t PURGE')",
        "delete(url, params={'purgeRequested': 'true'})",
    ],
)
def test_the_check_of_drops_would_notice(code: str) -> None:
    assert any(_DROPPING.search(text) for text in spelled(ast.parse(code)))


@each_case(
    "code",
    [
        "table.expireSnapshots().cleanExpiredMetadata(True)",
        "options['clean_expired_metadata']",
        "{'action': 'remove-partition-specs'}",
        "RemoveSchemasUpdate(ids)",
        "builder.removeUnusedSpecs()",
    ],
)
def test_the_check_of_removed_specs_would_notice(code: str) -> None:
    assert any(_REMOVING_SPECS.search(text) for text in spelled(ast.parse(code)))


_CLEANING = frozenset(
    {"expireSnapshots", "expire_snapshots", "deleteOrphanFiles", "deleteReachableFiles", "cleanExpiredFiles"}
)
_CLEANING_CALLED = re.compile(r"(?i)\bcall\b[^(]*\b(?:expire_snapshots|remove_orphan_files)\b")


def cleaning(module: ast.Module) -> list[str]:
    """Calls of what Iceberg's clients have that deletes files by itself, in Java, in Python and by SQL."""
    return [
        ast.unparse(node)
        for node in walk(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (
            node.func.attr in _CLEANING
            or (node.func.attr == "sql" and any(_CLEANING_CALLED.search(ast.unparse(one)) for one in node.args))
        )
    ]


def test_e7_o15_icebergs_own_cleaning_is_never_used() -> None:
    assert {within(path): found for path in MODULES if (found := cleaning(tree(path)))} == {}


@each_case(
    "code",
    [
        "table.java.expireSnapshots().commit()",
        "table.maintenance.expire_snapshots()",
        "SparkActions.get().deleteOrphanFiles(table).execute()",
        "spark.sql(f'CALL {catalog}.system.remove_orphan_files(table => {name})')",
    ],
)
def test_the_check_of_cleaning_would_notice(code: str) -> None:
    assert len(cleaning(ast.parse(code))) == 1


def test_e12_pyiceberg_is_one_whose_expiry_shares_nothing() -> None:
    """Its expiry was kept in attributes of the class before."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    (floor,) = [re.findall(r">=(\d+)\.(\d+)", line) for line in declared if re.match(r"pyiceberg\b(?!-)", line)]
    assert [(int(major), int(minor)) >= (0, 12) for major, minor in floor] == [True]
    major, minor, *_ = version("pyiceberg").split(".")
    assert (int(major), int(minor)) >= (0, 12)


def shared_values(module: ast.Module) -> list[str]:
    """Attributes of classes whose value all instances would share and could change."""
    return [
        f"{node.name}.{ast.unparse(one)}"
        for node in walk(module)
        if isinstance(node, ast.ClassDef)
        for one in node.body
        if isinstance(one, ast.Assign | ast.AnnAssign) and one.value is not None and is_mutable(one.value)
    ]


def is_mutable(value: ast.expr) -> bool:
    match value:
        case ast.List() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp():
            return True
        case ast.Call(function):
            return ast.unparse(function).split(".")[-1] in {"list", "dict", "set", "defaultdict", "deque", "Counter"}
        case _:
            return False


def test_e12_no_class_has_a_value_that_its_instances_change() -> None:
    assert {within(path): found for path in MODULES if (found := shared_values(tree(path)))} == {}


@each_case("value", ["[]", "{}", "set()", "{1, 2}", "collections.defaultdict(list)", "{n: [] for n in a}"])
def test_the_check_of_shared_values_would_notice(value: str) -> None:
    assert shared_values(ast.parse(f"class C:\n    kept: Any = {value}")) != []
    assert shared_values(ast.parse(f"class C:\n    def f(self):\n        kept = {value}")) == []


@each_case(
    "code",
    [
        "os.remove(p)",
        "p.unlink()",
        "shutil.rmtree(p)",
        "io.delete(p)",
        "rmtree(p)",
        "table.java.io().deleteFile(p)",
        "self._io(p).delete(p)",
        "client.delete_object(Bucket=b, Key=k)",
    ],
)
def test_the_check_of_deletions_would_notice(code: str) -> None:
    assert deletions(ast.parse(code))


def test_each_migration_and_each_decision_has_a_number_of_its_own() -> None:
    """Two that were begun at once take the same number, and nothing in them conflicts."""
    versions = sorted((SRC / "icewright/store/migrations/versions").glob("v*.py"))
    decisions = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    for found, digits, first in ((versions, slice(1, 5), BASELINE), (decisions, slice(0, 4), 1)):
        numbers = [int(path.name[digits]) for path in found]
        assert numbers == list(range(first, first + len(numbers)))
    for number, path in enumerate(versions, start=BASELINE):
        text = path.read_text(encoding="utf-8")
        before = "None" if number == BASELINE else f'"{number - 1:04}"'
        assert f'revision = "{number:04}"' in text, path
        assert f"down_revision: str | None = {before}" in text, path


def test_each_folder_with_a_budget_exists() -> None:
    names = set(tomllib.loads(BUDGET.read_text(encoding="utf-8"))["seconds"]) - {"others"}
    assert [name for name in sorted(names) if not (ROOT / "tests" / name).is_dir()] == []


def test_the_check_of_budgets_would_notice() -> None:
    usual = {"catalogs": 80.0, "spark": 500.0, "web": 50.0} | {f"unlisted_{number}": 1.0 for number in range(40)}
    assert beyond_budget(usual) == []
    (line,) = beyond_budget({**usual, "catalogs": 500.0})
    assert line.startswith("tests/catalogs took 500 s, more than 2.0 times its budget of ")
    (line,) = beyond_budget({**usual, "unlisted_7": 500.0})
    assert line.startswith("tests/unlisted_7 took 500 s")
    slow = {name: 10 * seconds for name, seconds in usual.items()}
    assert beyond_budget(slow) == [], "the machine is slow, also where most folders have no line of their own"
    (line,) = beyond_budget({**slow, "catalogs": 5_000.0})
    assert line.startswith("tests/catalogs took 5000 s")
