"""A sampling setting is described once: whoever adds one finds it wherever settings can be made."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ladechat

ENTRY = """    typical_p: Annotated[
        float, _setting("Draw typical tokens.", "a part", option="-Y", gt=0.0, le=1.0)
    ] = 1.0
    min_p:"""

WHERE_IT_IS = """
import json
from ladechat import catalog, commands, preferences
from ladechat.cli import app
from ladechat.protocol import Configure, Settings, decode_command, encode
from ladechat.session.change import adjustable, change
from ladechat.session.launcher import EngineOptions
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


def with_another_setting(folder: Path) -> dict[str, Any]:
    """Where a copy of the program knows a setting that is entered into its table, and how."""
    copy = folder / "ladechat"
    shutil.copytree(Path(ladechat.__file__).parent, copy, ignore=shutil.ignore_patterns("demo", "__pycache__"))
    values = copy / "protocol" / "values.py"
    values.write_text(values.read_text(encoding="utf-8").replace("    min_p:", ENTRY, 1), encoding="utf-8")
    command = [sys.executable, "-P", "-c", WHERE_IT_IS]
    ran = subprocess.run(command, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_sampling_setting_that_is_entered_once_is_everywhere(tmp_path: Path) -> None:
    assert with_another_setting(tmp_path) == {
        "command line": [["--typical-p", "-Y", "Draw typical tokens."]],
        "settings file": "typical_p has to be a part, not 2.0.",
        "slash command": "Draw typical tokens.",
        "form": ["1"],
        "typed": 0.5,
        "sent": 0.25,
        "engine": True,
    }
