"""The documents tell the truth: the fields, keys, commands and files that they name are those that exist."""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from textual.binding import Binding, BindingType
from textual.dom import DOMNode

from ladechat import protocol
from ladechat.app import LadechatApp
from ladechat.bench.options import CONTENDERS
from ladechat.replay_app import ReplayApp
from ladechat.widgets.prompt import Prompt
from ladechat.widgets.slider import Slider
from ladechat.widgets.transcript import Transcript

ROOT = Path(__file__).parent.parent
RECORDS = [protocol.Message, protocol.Settings, protocol.Timing, protocol.DraftTree, protocol.WindowView]
RECORDS += [protocol.PoolView, protocol.Candidate, protocol.SamplingDefaults]
RECORDS += [protocol.Expectation, protocol.PassCost, protocol.Memory]


def spaced(name: str) -> str:
    """`PoolView` as the documents head it: pool view."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


def sections(page: str) -> dict[str, str]:
    """The text below each second-level heading, by the heading without its back-quotes."""
    parts = re.split(r"^#{1,2} +(.+)$", page, flags=re.MULTILINE)
    return {heading.strip("` "): body for heading, body in zip(parts[1::2], parts[2::2], strict=True)}


def documented_fields(section: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE))


def tracked_text() -> list[Path]:
    """What a clone holds, or would hold after the next commit, as far as it is text."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()]


PAGE = sections((ROOT / "docs" / "protocol.md").read_text())


@pytest.mark.parametrize("tag", [*protocol.COMMANDS, *protocol.EVENTS])
def test_the_protocol_page_has_every_field_of_every_message(tag: str) -> None:
    cls = {**protocol.COMMANDS, **protocol.EVENTS}[tag]
    common = {"seq", "t"} if tag in protocol.EVENTS else set()
    assert documented_fields(PAGE[tag]) == {field.name for field in msgspec.structs.fields(cls)} - common


def test_the_protocol_page_has_the_fields_that_every_event_has() -> None:
    assert documented_fields(PAGE["Events"]) == {field.name for field in msgspec.structs.fields(protocol.Event)}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_the_protocol_page_has_every_field_of_every_record(record: type[protocol.Record]) -> None:
    assert documented_fields(PAGE[spaced(record.__name__)]) == {f.name for f in msgspec.structs.fields(record)}


def test_the_protocol_page_has_no_message_that_does_not_exist() -> None:
    known = {*protocol.COMMANDS, *protocol.EVENTS, *(spaced(record.__name__) for record in RECORDS)}
    assert {heading for heading, body in PAGE.items() if documented_fields(body)} - {"Events"} <= known
    assert set(RECORDS) == set(protocol.Record.__subclasses__())


KEY_NAMES = {"escape": "Esc", "up": "↑", "down": "↓", "left": "←", "right": "→"}
KEY_NAMES |= {"pageup": "Page Up", "pagedown": "Page Down", "plus": "+", "minus": "-"}
PLACES: dict[str, type[DOMNode]] = {
    "Anywhere": LadechatApp,
    "In a replay": ReplayApp,
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
    section = sections((ROOT / "docs" / "keys.md").read_text())[place]
    documented = [
        key for cell in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE) for key in re.findall("`(.+?)`", cell)
    ]
    assert sorted(documented) == sorted(key for binding in PLACES[place].BINDINGS for key in shown_keys(binding))


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")), ids=lambda path: path.name)
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        named = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", page.read_text(), flags=re.MULTILINE))
        assert named, page.name
        assert named <= targets, page.name


def test_constraints_are_bare_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", pin) for pin in pins)


def test_every_dependency_is_constrained_within_its_range() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = dict(re.findall(r"^([A-Za-z0-9._-]+)==(.+)$", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE))
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    extras = project["optional-dependencies"]
    for line in [*project["dependencies"], *(line for extra in extras.values() for line in extra)]:
        requirement = Requirement(line)
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), line


def test_no_file_names_a_package_host_or_a_place_on_one_machine() -> None:
    hosts = "|".join(("pypi" + r"\.org", "pytho" + r"nhosted\.org", "download" + r"\.pytorch\.org"))
    places = "|".join(("/" + "work/", "/" + "root/", "/" + r"home/\w", "/" + "Users/", "/" + "tmp/w/"))
    for path in tracked_text():
        found = re.search(f"{hosts}|(?<![\\w.]){places}", path.read_text(errors="replace"))
        assert found is None, f"{path.relative_to(ROOT)}: {found[0] if found else ''}"


def test_the_page_on_benchmarks_names_all_that_can_take_part() -> None:
    page = (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")
    assert [name for name in CONTENDERS if f"| `{name}` |" not in page] == []


def test_the_readme_quotes_the_committed_benchmark() -> None:
    report = json.loads((ROOT / "benchmarks" / "results" / "speed_demo.json").read_text(encoding="utf-8"))

    def told(name: str, field: str, kind: str = "all") -> str:
        return f"{report['contenders'][name][kind][field][0]:.2f}×"

    def steps(name: str) -> str:
        return f"{report['contenders'][name]['all']['tokens_per_step']:.2f}"

    fixed, auto, theirs = (
        "lookahead 5,3,5, eager in turns",
        "auto, eager in turns",
        "the authors' implementation: 5,3,5",
    )
    compiled = "auto, compiled in turns"
    quoted = (
        f"one thread of an {report['machine']['processor']}, no GPU, {sum(report['prompts'].values())} prompts",
        f"{steps(fixed)} tokens a step at {told(fixed, 'to_plain')} the speed of",
        f"`--auto` {steps(auto)} at {told(auto, 'to_plain')} (on code",
        (f"(on code {told(auto, 'to_plain', 'code')}, on conversations {told(auto, 'to_plain', 'multi_turn')})"),
        f"implementation {steps(theirs)} at {told(theirs, 'to_plain')} of its own plain decoding",
        f"plain decoding is {report['contenders']['plain, compiled']['all']['to_transformers'][0]:.1f} times as fast",
        f"lookahead {told(fixed.replace('eager', 'compiled'), 'to_plain')} of that",
        f"`--auto` {told(compiled, 'to_plain')} (on code {told(compiled, 'to_plain', 'code')}).",
    )
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert [piece for piece in quoted if piece not in readme] == []
