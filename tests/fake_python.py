"""A Python of another version, for tests of what installs into it: it makes environments of itself, and its pip
installs nothing but notes what it was asked for.
"""

import sys
from pathlib import Path

PROGRAM = """#!{python} -IS
import json, os, platform, sys, types

VERSION, PARTS = "{version}", {parts}
home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
installed = os.path.join(home, "installed.json")
is_environment = os.path.exists(os.path.join(home, "pyvenv.cfg"))
sys.version, sys.argv = VERSION, [word for word in sys.argv[1:] if word != "-I"]
platform.python_version = lambda: VERSION
platform.system, platform.machine, os.confstr = lambda: "{system}", lambda: "{machine}", lambda name: "{libc}"
if is_environment:
    sys.modules["pip"] = types.ModuleType("pip")
if os.path.exists(installed):
    sys.path.append(json.load(open(installed))["checkout"])
if sys.argv[:2] == ["-m", "venv"]:
    folder = os.path.join(sys.argv[2], "bin")
    os.makedirs(folder)
    open(os.path.join(sys.argv[2], "pyvenv.cfg"), "w").close()
    with open(__file__) as mine, open(os.path.join(folder, "python"), "w") as copy:
        copy.write(mine.read())
    os.chmod(copy.name, 0o755)
elif sys.argv[:2] == ["-m", "pip"]:
    pip = {{name: value for name, value in os.environ.items() if name.startswith("PIP_")}}
    with open(installed, "w") as file:
        json.dump({{"checkout": os.getcwd(), "arguments": sys.argv[2:], "environment": pip}}, file)
elif sys.argv[0] == "-c":
    missing = {{"venv"}} - set(PARTS)
    sys.modules.update(dict.fromkeys(missing))
    program, sys.argv = sys.argv[1], sys.argv[1:]
    exec(program)
else:
    with open(sys.argv[0]) as file:
        exec(compile(file.read(), sys.argv[0], "exec"), {{"__name__": "__main__"}})
"""


def write_fake_python(
    path: Path,
    version: str,
    *,
    parts: tuple[str, ...] = ("venv",),
    system: str = "Linux",
    machine: str = "x86_64",
    libc: str = "glibc 2.36",
) -> Path:
    """Write the executable, which a real Python without any packages runs.

    Args:
        path: where.
        version: what it says of itself.
        parts: of the standard library, those that distributions leave out: "venv" or nothing.
        system: what `platform.system` says in it.
        machine: what `platform.machine` says.
        libc: what `os.confstr` says.
    """
    python = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    facts = {"version": version, "parts": parts, "system": system, "machine": machine, "libc": libc}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PROGRAM.format(python=python, **facts), encoding="utf-8")
    path.chmod(0o755)
    return path
