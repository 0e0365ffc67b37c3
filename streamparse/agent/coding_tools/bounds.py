"""Every bound of the coding tools, with its reason."""

from __future__ import annotations

MAX_FILE = 32 * 1024 * 1024
"""Bytes of a file that is read or edited. Source is far smaller; a log that is larger wants ``tail`` or ``grep``."""

PAGE_LINES = 800
"""Lines that ``read_file`` shows at once: most source files whole, some 10,000 tokens."""

PAGE_CHARACTERS = 30_000
"""Characters that any tool returns, about: less than the executor passes on (``results.MAX_TEXT``), so that nothing is
cut in the middle."""

LINE_CHARACTERS = 2_000
"""Characters of one line that are shown. A minified file is one line."""

TAIL_LINES = 300
"""B9: the last lines of a command's output."""

ERROR_LINES = 20
"""B9: error lines kept from the start, and as many from the end, of what was cut."""

TIMEOUT = 300.0
"""B9, B10: seconds that a command may run."""

GRACE = 1.0
"""Seconds between the request to end and the kill: enough to flush a report, too little to be noticed."""

SEARCHED_FILES = 20_000
"""Files that a search opens. A large repository has fewer source files."""

SEARCHED_BYTES = 2 * 1024 * 1024
"""Bytes of a source file that is searched. What is larger was generated."""

SEARCH_SECONDS = 20.0
"""How long a search goes on. What was found is shown, and that it is not all."""

HITS = 60
"""Definitions that a search lists."""

GIT_SECONDS = 60.0
"""How long git may take for one listing or diff."""

UNTRACKED = 50
"""Untracked files whose content a diff shows; the rest is named."""
