"""What is started for the screen stays light, and a way through the code short. The arrows: `make check`."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "ladechat").rglob("*.py"))


def modules_loaded_by(*modules: str) -> set[str]:
    """The top-level modules in a fresh interpreter that has imported these of ladechat, which must print nothing."""
    imports = ", ".join(f"ladechat.{module}" for module in modules)
    code = f"import sys, {imports}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 1, "importing printed something"
    return set(lines[0].split())


def third_party_imports() -> set[str]:
    """The top-level modules that ladechat itself imports, standard library and its own left out."""
    found: set[str] = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"ladechat"}


MODULES = {"markdown_it_py": "markdown_it", "pillow": "PIL"}
"""What is imported of a package by another name than its own."""


def test_importing_the_ui_imports_no_torch() -> None:
    loaded = modules_loaded_by("app", "shell.cli", "screens.chat.screen", "session.live", "catalog", "protocol")
    assert not loaded & {"torch", "transformers", "numpy", "tokenizers", "huggingface_hub"}


def test_importing_a_command_or_the_server_imports_no_screen_and_no_torch() -> None:
    """A mistyped option, or model, is answered at once, not after seconds of imports."""
    loaded = modules_loaded_by(
        "shell.cli", "shell.ask", "shell.learn", "bench.command", "export.command", "serve.commands", "engine.server"
    )
    assert not loaded & {"textual", "torch", "transformers"}


def test_a_plugin_needs_nothing_that_its_engine_has_not() -> None:
    assert modules_loaded_by("plugins.vllm") & third_party_imports() == {"numpy"}


def test_every_import_is_a_declared_dependency_and_every_dependency_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [
        *project["dependencies"],
        *(line for name in ("gguf", "gif", "keyring", "plot", "quantize", "serve") for line in extras[name]),
    ]
    needed = [line for line in needed if not line.startswith("accelerate")]  # which transformers imports
    declared = {MODULES.get(name, name) for name in (line.partition(">")[0].replace("-", "_") for line in needed)}
    assert third_party_imports() - {"triton"} == declared  # which torch brings to where it can use it


CONTRACTS = ("protocol", "session.engine", "decoder.drafters.drafter", "decoder.runner", "decoder.step")
"""What two modules may share instead of knowing each other."""


@pytest.mark.parametrize(("way", "most"), [(0, 30), (1, 8)], ids=["a token", "W"])
def test_each_module_on_a_way_of_the_tour_is_linked_to_one_before_it(way: int, most: int) -> None:
    section = (ROOT / "docs/tour.md").read_text(encoding="utf-8").partition("## Through the whole program")[2]
    ways = section.partition("The value of the slider W")[::2]
    modules = [name.replace("/", ".") for name in re.findall(r"^\d+\. \[`(.+?)\.py`\]", ways[way], re.MULTILINE)]
    assert 5 < len(modules) <= most
    for place, module in enumerate(modules[1:], start=1):
        assert any(linked(module, before) for before in modules[:place]), module


def linked(one: str, other: str) -> bool:
    """Whether one module imports the other, or both a contract."""
    ones, others = modules_imported_by(one), modules_imported_by(other)
    return one in others or other in ones or any(contract in ones & others for contract in CONTRACTS)


def modules_imported_by(module: str) -> set[str]:
    """The modules of ladechat that a module imports, and itself; of the protocol, whatever part."""
    tree = ast.parse((ROOT / "ladechat" / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    sources = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    names = {one.module or "" for one in sources} | {f"{one.module}.{n.name}" for one in sources for n in one.names}
    found = {name.removeprefix("ladechat.") for name in names if name.startswith("ladechat")} | {module}
    return found | {"protocol" for name in found if name.startswith("protocol")}


def test_no_class_has_more_than_three_parents() -> None:
    classes = [node for path in SOURCES for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    assert not [one.name for one in classes if isinstance(one, ast.ClassDef) and len(one.bases) > 3]


def test_an_action_of_the_chat_is_in_one_controller() -> None:
    found = [
        node for path in (ROOT / "ladechat/screens/chat").glob("*.py") for node in ast.walk(ast.parse(path.read_text()))
    ]
    actions = [one.name for one in found if isinstance(one, ast.FunctionDef) and one.name.startswith("action_")]
    assert len(actions) == len(set(actions)) > 20
