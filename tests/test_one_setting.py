"""A setting is described once: whoever adds one finds it wherever settings can be made."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ladechat

ENTRY = """    typical_p: Annotated[
        float, setting_meta("Draw typical tokens.", "a part", option="-Y", gt=0.0, le=1.0)
    ] = 1.0
    min_p:"""

WHERE_IT_IS = """
import json
from ladechat import catalog, commands, preferences
from ladechat.shell.cli import app
from ladechat.protocol import Configure, Settings, decode_command, encode
from ladechat.session.change import adjustable, change
from ladechat.engine_options import EngineOptions
from typer.main import get_command

settings, offered = Settings(), catalog.DECODERS
asked = get_command(app).commands["ask"].params
print(json.dumps({
    "command line": [[*one.opts, one.help] for one in asked if one.name == "typical_p"],
    "settings file": preferences.SETTINGS["typical_p"].problem(2.0),
    "slash command": commands.find("typical-p").help,
    "form": [one.value for one in adjustable(settings, offered) if one.name == "typical-p"],
    "typed": change("typical-p", "0.5", settings, offered).typical_p,
    "sent": decode_command(encode(Configure(typical_p=0.25))).typical_p,
    "engine": "--typical-p" in EngineOptions().command(),
}))
"""


OPTION = """    another: Annotated[int, typer.Option(help="Another one.")] = 3
    settings: Settings ="""

WHERE_IT_ARRIVES = """
import json
from dataclasses import asdict
from ladechat.shell.cli import app
from ladechat.engine import server
from ladechat.engine_options import EngineOptions
from typer.main import get_command
from typer.testing import CliRunner

served = []
server.serve = lambda options: served.append(options.another)
CliRunner().invoke(app, ["engine", *EngineOptions(another=5).arguments()])
program = get_command(app)
commands = {"ladechat": program, **program.commands}
print(json.dumps({
    "command line": [name for name in commands if any(one.name == "another" for one in commands[name].params)],
    "engine": served,
}))
"""


def of_a_copy(folder: Path, module: str, old: str, new: str, script: str) -> dict[str, Any]:
    """What a script prints that runs in a copy of the program in which one line was added."""
    copy = folder / "ladechat"
    shutil.copytree(Path(ladechat.__file__).parent, copy, ignore=shutil.ignore_patterns("demo", "__pycache__"))
    file = copy / module
    file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    command = [sys.executable, "-P", "-c", script]
    ran = subprocess.run(command, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_sampling_setting_that_is_entered_once_is_everywhere(tmp_path: Path) -> None:
    assert of_a_copy(tmp_path, "protocol/values.py", "    min_p:", ENTRY, WHERE_IT_IS) == {
        "command line": [["--typical-p", "-Y", "Draw typical tokens."]],
        "settings file": "typical_p has to be a part, not 2.0.",
        "slash command": "Draw typical tokens.",
        "form": ["1"],
        "typed": 0.5,
        "sent": 0.25,
        "engine": True,
    }


def test_an_option_of_the_engine_that_is_entered_once_arrives_there(tmp_path: Path) -> None:
    assert of_a_copy(tmp_path, "engine_options.py", "    settings: Settings =", OPTION, WHERE_IT_ARRIVES) == {
        "command line": ["ladechat", "race", "serve", "ask", "engine"],
        "engine": [5],
    }
