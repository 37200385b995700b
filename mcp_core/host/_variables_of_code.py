"""Which environment variables can make a program run other code.

1. Loaders, shells, languages, package managers and tools read so many that no list of these would
   be complete. So a variable counts as one unless its name says that it's harmless: a name that is
   known, or one whose last word is about the data of an application, such as `GITHUB_TOKEN`.
2. A harmless last word doesn't help a name of a family that decides what is loaded, or from where:
   `PIP_INDEX_URL`, `DOCKER_HOST`, `PLAYWRIGHT_DOWNLOAD_HOST`.
3. Case doesn't count: Windows ignores it, and npm reads `npm_config_*` in any.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["can_redirect_code"]

# Languages, terminals, logs and modes. `HOME` is not one: programs read their settings there.
_HARMLESS_NAMES: Final = frozenset(
    """
    LANG LANGUAGE TZ TERM COLORTERM NO_COLOR FORCE_COLOR CLICOLOR COLUMNS LINES
    LOG LOGLEVEL LOG_FORMAT DEBUG VERBOSE QUIET CI NODE_ENV API_VERSION NO_PROXY
    """.split()
)
# The last words of what an application is given: secrets, accounts, addresses, numbers, places.
_HARMLESS_LAST_WORDS: Final = frozenset(
    """
    KEY KEYS TOKEN TOKENS SECRET SECRETS PASSWORD PASSWD PASS PASSPHRASE PAT AUTH CREDENTIAL APIKEY
    USER USERNAME EMAIL LOGIN ACCOUNT TENANT ORG ORGANIZATION TEAM PROJECT ID IDS NAME
    URL URI ENDPOINT HOST HOSTNAME PORT DOMAIN ORIGIN ADDRESS DATABASE DB DSN SCHEMA TABLE BUCKET
    QUEUE TOPIC CHANNEL REGION ZONE LOCATION LOCALE TIMEZONE CURRENCY
    TIMEOUT LIMIT LIMITS RETRIES SIZE COUNT MAX MIN TTL INTERVAL RATE LEVEL ENABLED DISABLED
    MODEL TEMPERATURE READONLY SCOPE SCOPES
    """.split()
)
# The first words of families whose members decide what is loaded or run.
_FAMILIES: Final = re.compile(
    r"""
    _* (?:
      LD | DYLD | GCONV | GLIBC | GETCONF | LOCPATH | MALLOC | LIBRARY  # loaders
    | BASH | ZSH | KSH | FISH | SHELL | ENV | COMSPEC | PS\d | IFS  # shells
    | PYTHON\w* | PYENV | PIP | PIPX | PIPENV | UV | UVX | POETRY | PDM | CONDA | MAMBA | VIRTUAL
    | NODE | NPM | NPX | NVM | YARN | PNPM | BUN | BUNX | DENO | VOLTA | COREPACK | ELECTRON
    | RUBY\w* | GEM | BUNDLE | BUNDLER | RBENV | PERL\w* | PHP | COMPOSER | LUA | JULIA | R
    | JAVA | JDK | JRE | JVM | JDBC | CLASSPATH | MAVEN | MVN | GRADLE | KOTLIN | SBT | SCALA
    | GO | CARGO | RUST\w* | DOTNET | NUGET | COR | CORECLR | COMPLUS | MSBUILD
    | GIT | SSH | GPG | HG | SVN | DOCKER | CONTAINER | CONTAINERD | PODMAN | BUILDAH | KUBE\w*
    | HELM | NIX | GUIX | HOMEBREW | ASDF | MISE | CURL | WGET | SSL | OPENSSL | REQUESTS
    | QT | GTK | GST | GIO | XDG | TMP | TEMP | CMAKE | CC | CXX
    | PUPPETEER | PLAYWRIGHT | SELENIUM
    )
    """,
    re.VERBOSE,
)
# Words of names that say from where, or through what, code comes.
_CODE_WORDS: Final = frozenset(
    """
    PATH PRELOAD LOADER LIB LIBRARY MODULE MODULES PLUGIN PLUGINS EXTENSION EXTENSIONS HOOK HOOKS
    INDEX REGISTRY MIRROR REPO REPOSITORY PACKAGE PACKAGES CHANNELS DOWNLOAD DIST BINARY BIN CDN
    PROXY CA CERT CERTS INSTALL UPDATE UPGRADE
    COMMAND CMD EXEC EXECUTABLE PROGRAM SCRIPT SHELL INIT STARTUP
    OPTS OPTIONS FLAGS ARGS ARGUMENTS CONFIG RC
    """.split()
)
_WORD_BREAK: Final = re.compile(r"[_.-]+|(?<=[a-z0-9])(?=[A-Z])")


def can_redirect_code(name: str) -> bool:
    """Return True unless an environment variable is known to change no code that is run.

    Args:
        name: its name.
    """
    upper = name.upper()
    if upper in _HARMLESS_NAMES or re.fullmatch(r"LC_[A-Z]+", upper):
        return False
    if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        return True
    words = [word.upper() for word in _WORD_BREAK.split(name) if word]
    if not words or words[-1] not in _HARMLESS_LAST_WORDS:
        return True
    return _FAMILIES.fullmatch(words[0]) is not None or not _CODE_WORDS.isdisjoint(words)
