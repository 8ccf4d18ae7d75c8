"""The HTTP library of huggingface_hub: httpx, and httpx2 from its version 2 on, which has the same names.

Its exceptions and clients are classes of that library.
"""

import sys
from typing import TYPE_CHECKING

from huggingface_hub import errors

if TYPE_CHECKING:
    import httpx as httpx
else:
    httpx = sys.modules[errors.HTTPError.__module__]
