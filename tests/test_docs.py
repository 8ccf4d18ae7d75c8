"""The documents tell the truth: the fields, keys, commands, options and files that they name are those that exist."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from textual.binding import Binding, BindingType
from textual.dom import DOMNode

from ladechat import catalog, protocol
from ladechat.bench.options import method_names
from ladechat.commands import COMMANDS
from ladechat.own_keys import IDS
from ladechat.preferences import NAME as SETTINGS_NAME, SETTINGS
from ladechat.screens.chat.screen import ChatScreen
from ladechat.screens.help.explain import ExplainScreen
from ladechat.screens.help.help import HelpScreen
from ladechat.screens.learn.screen import LearnScreen
from ladechat.screens.lists.conversations import ConversationsScreen
from ladechat.screens.lists.models import ModelsScreen
from ladechat.screens.lists.settings import SettingsScreen
from ladechat.screens.race import RaceScreen
from ladechat.screens.reading import ReadingScreen
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.screens.system_prompt import SystemPromptScreen
from ladechat.shell.cli import app
from ladechat.widgets.bars.find_bar import FindLine
from ladechat.widgets.panels.window_panel import WindowPanel
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.sliders.slider import Slider
from ladechat.widgets.transcript.transcript import Transcript

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def sections(page: str) -> dict[str, str]:
    """The text below each second-level heading, by the heading without its back-quotes."""
    parts = re.split(r"^#{1,2} +(.+)$", page, flags=re.MULTILINE)
    return {heading.strip("` "): body for heading, body in zip(parts[1::2], parts[2::2], strict=True)}


def anchors(page: Path) -> set[str]:
    """What can be linked to in a page, as the usual renderers name it."""
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ +(.+)$", prose, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def tracked_text() -> list[Path]:
    """What a clone holds, or would hold after the next commit, as far as it is text."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()]


# --- the protocol -----------------------------------------------------------------------------------------------------

PROTOCOL_PAGE = sections((ROOT / "docs" / "protocol.md").read_text(encoding="utf-8"))
RECORDS: list[type[protocol.Record]] = [*protocol.Record.__subclasses__(), protocol.Settings]
RECORDS.remove(protocol.SamplingSettings)  # the base of settings


def spaced(name: str) -> str:
    """`PoolView` as the page heads it: pool view."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


def documented_fields(section: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE))


def fields(cls: type[msgspec.Struct]) -> set[str]:
    return {field.name for field in msgspec.structs.fields(cls)}


@pytest.mark.parametrize("tag", [*protocol.COMMANDS, *protocol.EVENTS])
def test_the_protocol_page_has_every_field_of_every_message(tag: str) -> None:
    common = {"seq", "t"} if tag in protocol.EVENTS else set()
    assert documented_fields(PROTOCOL_PAGE[tag]) == fields({**protocol.COMMANDS, **protocol.EVENTS}[tag]) - common


def test_the_protocol_page_has_the_fields_that_every_event_has() -> None:
    assert documented_fields(PROTOCOL_PAGE["Events"]) == fields(protocol.Event)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_the_protocol_page_has_every_field_of_every_record(record: type[protocol.Record]) -> None:
    assert documented_fields(PROTOCOL_PAGE[spaced(record.__name__)]) == fields(record)


def test_the_protocol_page_has_no_message_that_does_not_exist() -> None:
    known = {*protocol.COMMANDS, *protocol.EVENTS, *(spaced(record.__name__) for record in RECORDS)}
    assert {heading for heading, body in PROTOCOL_PAGE.items() if documented_fields(body)} - {"Events"} <= known


# --- keys -------------------------------------------------------------------------------------------------------------

KEY_NAMES = {"escape": "Esc", "up": "↑", "down": "↓", "left": "←", "right": "→"}
KEY_NAMES |= {"pageup": "Page Up", "pagedown": "Page Down", "plus": "+", "minus": "-"}
KEY_NAMES |= {"left_square_bracket": "[", "right_square_bracket": "]", "question_mark": "?", "slash": "/"}
PLACES: dict[str, type[DOMNode]] = {
    "Anywhere": ChatScreen,
    "In a replay": ReplayScreen,
    "In a race": RaceScreen,
    "In the lessons": LearnScreen,
    "In the Jacobi window": WindowPanel,
    "In the help": HelpScreen,
    "In the explanations": ExplainScreen,
    "In the list of conversations": ConversationsScreen,
    "In a conversation that is read": ReadingScreen,
    "In the line that finds": FindLine,
    "In the list of models": ModelsScreen,
    "In the settings": SettingsScreen,
    "In the system prompt": SystemPromptScreen,
    "In the prompt": Prompt,
    "On a slider": Slider,
    "In the conversation": Transcript,
}


def shown_keys(binding: BindingType) -> Iterator[str]:
    """The keys of a binding as the documents write them: `ctrl+c` as Ctrl+C."""
    assert isinstance(binding, Binding)
    for key in binding.key.split(","):
        single = len(key) == 1
        yield key if single else "+".join(KEY_NAMES.get(part, part.capitalize()) for part in key.split("+"))


@pytest.mark.parametrize("place", PLACES)
def test_the_keys_page_has_the_keys_that_are_bound(place: str) -> None:
    section = sections((ROOT / "docs" / "keys.md").read_text(encoding="utf-8"))[place]
    cells = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
    documented = [key for cell in cells for key in re.findall("`(.+?)`", cell)]
    assert sorted(documented) == sorted(key for binding in PLACES[place].BINDINGS for key in shown_keys(binding))


def test_the_page_of_commands_has_each_command_with_its_help() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(/.+?)` \| (.+?) \|$", page, re.MULTILINE)
    assert documented == [(command.usage, command.help) for command in COMMANDS]


def test_the_page_of_settings_has_each_setting_with_its_range() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(\w+)` \| (.+?) \| .+? \| (.+?) \|$", page, re.MULTILINE)
    assert documented == [(setting.name, setting.wants, setting.help) for setting in SETTINGS.values()]


def test_the_page_of_settings_names_each_action_whose_key_can_be_another() -> None:
    section = sections((ROOT / "docs" / "settings.md").read_text(encoding="utf-8"))["Keys of your own"]
    assert set(IDS) <= set(re.findall(r"`(\w+)`", section))


def test_the_keys_of_the_readme_are_bound() -> None:
    section = sections((ROOT / "README.md").read_text(encoding="utf-8"))["What you see"]
    named = {key for cell in re.findall(r"^\| ([A-Z].*?) \|", section, re.MULTILINE) for key in cell.split(", ")}
    bound = {key for place in PLACES.values() for binding in place.BINDINGS for key in shown_keys(binding)}
    assert {"Enter", "Esc"} <= named <= bound | {"Ctrl+P"}  # the palette's key is Textual's


# --- commands and options ---------------------------------------------------------------------------------------------

COMMAND_LINE: Any = typer.main.get_command(app)


def options_of(command: Any) -> set[str]:
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)}


def commands_of(command: Any) -> dict[str, Any]:
    """Those of a group, by name; a command that is no group has none."""
    return getattr(command, "commands", {})


def all_commands(command: Any) -> Iterator[Any]:
    yield command
    for one in commands_of(command).values():
        yield from all_commands(one)


def blocks(page: Path) -> list[str]:
    """The lines that a reader is shown to type."""
    text = page.read_text(encoding="utf-8")
    fenced = re.findall(r"^```\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [line for block in fenced for line in block.splitlines()] + re.findall(r"^    (ladechat .*)$", text, re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_command_that_is_shown_exists_with_its_options(page: Path) -> None:
    inline = re.findall(r"`(ladechat [^`]+)`", page.read_text(encoding="utf-8"))
    for line in [*blocks(page), *inline]:
        typed = re.sub(r"\"[^\"]*\"|'[^']*'", "…", line.partition("#")[0])
        words = typed.split()
        if words[:1] != ["ladechat"] or "──" in line:
            continue
        command, rest = COMMAND_LINE, words[1:]
        while rest and rest[0] in commands_of(command):
            command, rest = commands_of(command)[rest[0]], rest[1:]
        assert not (rest and commands_of(command) and re.fullmatch(r"[a-z]+", rest[0])), line
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options_of(command), line


OF_SCRIPTS = {
    name
    for path in ROOT.glob("benchmarks/*.py")
    for name in re.findall(r'"(--[a-z][a-z-]+)"', path.read_text(encoding="utf-8"))
}
OF_SERVERS = {
    *("--speculative-config", "--per-request-spec-decode-metrics", "--tensor-parallel-size"),
    *("--pipeline-parallel-size", "--nnodes", "--node-rank", "--master-addr", "--headless", "--no-deps", "--tp"),
    *("--dist-init-addr", "--model-path", "--speculative-algorithm", "--speculative-num-draft-tokens"),
}
OF_OTHERS = {
    "tour.md": {"--length"},
    "CONTRIBUTING.md": {"--shuffle"},
    "server.md": OF_SERVERS,
    "serving.md": OF_SERVERS,
}
"""The option of a decoder which the page makes up, one of these tests (tests/conftest.py), and those of servers."""


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_option_that_is_named_exists(page: Path) -> None:
    known = {"--help", "--write", *OF_SCRIPTS, *OF_OTHERS.get(page.name, set())}
    for command in all_commands(COMMAND_LINE):
        known |= options_of(command)
    text = re.sub(r"^.*python -m tools.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= known


def test_every_decoder_is_explained() -> None:
    page = (ROOT / "docs" / "lookahead.md").read_text(encoding="utf-8")
    for info in catalog.DECODERS.values():
        assert f"`{info.name}`" in page or f"--decoder {info.name}`" in page or info.label.lower() in page.lower()


def test_the_page_on_benchmarks_names_all_that_can_take_part() -> None:
    page = (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")
    assert [name for name in method_names() if f"| `{name}` |" not in page] == []


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", page.read_text(encoding="utf-8"), re.MULTILINE)) <= targets


def test_the_page_on_installing_lists_every_file_that_is_written() -> None:
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "ladechat").rglob("*.py"))
    names = set(re.findall(r'user_\w+_path\("ladechat"\)\)? / "([\w.]+)"', sources))
    names |= set(re.findall(r'saved_file\("(\w+)"', sources)) | {SETTINGS_NAME}
    assert len(names) > 8 and {name for name in names if f"`{name}`" not in page} == set()


def test_every_script_that_is_named_exists() -> None:
    for page in PAGES:
        for name in re.findall(r"python -m ((?:benchmarks|tools)[\w.]*)", page.read_text(encoding="utf-8")):
            path = ROOT / name.replace(".", "/")
            assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), f"{page.name}: {name}"


# --- links and files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            file = page.parent / target if target else page
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_file_that_is_named_exists(page: Path) -> None:
    named = re.findall(r"`((?:tests|benchmarks|tools|docs)/[\w/.-]+)[`:]", page.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_no_file_names_a_package_host_or_a_place_on_one_machine() -> None:
    hosts = "|".join(("pypi" + r"\.org", "pytho" + r"nhosted\.org", "download" + r"\.pytorch\.org"))
    places = "|".join(("/" + "work/", "/" + "root/", "/" + r"home/\w", "/" + "Users/", "/" + "tmp/w/"))
    for path in tracked_text():
        found = re.search(f"{hosts}|(?<![\\w.]){places}", path.read_text(errors="replace"))
        assert found is None, f"{path.relative_to(ROOT)}: {found[0] if found else ''}"


# --- versions ---------------------------------------------------------------------------------------------------------


def test_constraints_are_bare_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", pin) for pin in pins)


def test_every_dependency_is_constrained_within_its_range() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([A-Za-z0-9._-]+)==(.+)$", constraints, flags=re.MULTILINE))
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    extras = project["optional-dependencies"]
    for line in [*project["dependencies"], *(line for extra in extras.values() for line in extra)]:
        requirement = Requirement(line)
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), line
