"""Which environment variables can make a program run other code.

1. There are two questions. `can_redirect_code`: a user who approves a server has to see every
   variable that isn't known to be harmless. Loaders, shells, languages, package managers and tools
   read so many that no list of harmful ones is complete. `redirects_code`: an administrator who
   allows a command means the code that its words name. A variable that is known to redirect it is
   refused. One of unknown purpose isn't, since many servers have such variables.
2. A name is harmless if it is known, or if its last word is about an application's data, such as
   `GITHUB_TOKEN`. This doesn't hold for families whose members decide what is loaded, or from
   where: `PIP_INDEX_URL`, `DOCKER_HOST`, `PLAYWRIGHT_DOWNLOAD_HOST`.
3. Case doesn't count: Windows ignores it, and npm reads `npm_config_*` in any.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["can_redirect_code", "redirects_code"]

# Variables of systems and shells that say where programs, settings and libraries are.
_CODE_NAMES: Final = frozenset(
    """
    PATH PATHEXT HOME USERPROFILE HOMEDRIVE HOMEPATH APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES
    SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PSMODULEPATH TMPDIR TMP TEMP PWD OLDPWD SHELL ENV
    ZDOTDIR IFS CDPATH PS4 PROMPT_COMMAND SHELLOPTS BASHOPTS EDITOR VISUAL PAGER BROWSER LESSOPEN
    LESSCLOSE MANPATH LOCPATH NLSPATH HOSTALIASES LOCALDOMAIN RES_OPTIONS CLASSPATH TCLLIBPATH PHPRC
    SSLKEYLOGFILE AWS_CA_BUNDLE
    """.split()
)
# The first words of families whose members decide what is loaded or run, and from where.
_FAMILIES: Final = re.compile(
    r"""
    _* (?:
    (?: PYTHON | PERL | RUBY | RUST | KUBE
      | GO(?:PATH|FLAGS|ROOT|BIN|PROXY|PRIVATE|NO|SUMDB|ENV|TOOL|WORK|CACHE|MODCACHE|EXPERIMENT
        | DEBUG|VCS) )[A-Z0-9]*
    | LD | DYLD | GCONV | GLIBC | GETCONF | MALLOC | LIBRARY  # loaders
    | BASH | ZSH | KSH | FISH | SHELL | ENV | COMSPEC | IFS  # shells
    | PYENV | PIP | PIPX | PIPENV | UV | UVX | POETRY | PDM | HATCH | CONDA | MAMBA | VIRTUAL
    | VIRTUALENV
    | NODE | NPM | NPX | NVM | YARN | PNPM | BUN | BUNX | DENO | VOLTA | FNM | TSX | TS_NODE
    | COREPACK | ELECTRON | PLAYWRIGHT | PUPPETEER | SELENIUM | CHROME
    | GEM | BUNDLE | BUNDLER | RBENV | PHP | COMPOSER | LUA | JULIA | R | ERL | ELIXIR | MIX | HEX
    | GHC | CABAL | STACK | OCAML | OPAM
    | JAVA | JDK | JRE | JVM | JDBC | MAVEN | MVN | GRADLE | KOTLIN | SBT | SCALA | CLOJURE
    | GO | CARGO | ZIG | DOTNET | NUGET | COR | CORECLR | COMPLUS | MSBUILD | CMAKE | CC | CXX
    | GIT | SSH | GPG | HG | SVN | DOCKER | CONTAINER | CONTAINERS | CONTAINERD | PODMAN | BUILDAH
    | BUILDKIT | HELM | NIX | GUIX | HOMEBREW | ASDF | MISE | RTX | PROTO | SNAP | FLATPAK
    | CURL | WGET | SSL | OPENSSL | REQUESTS | XDG | QT | GTK | GDK | GST | GIO | VK
    ) (?:_.*)?
    """,
    re.VERBOSE,
)
# The last words of other programs' variables that say the same.
_CODE_ENDINGS: Final = re.compile(
    r"""
    (?:.*_)?
    (?: PATH | PATHS | HOME | PREFIX | ROOTDIR | OPTIONS? | OPTS? | FLAGS? | ARGS? | PRELOAD | RC
    | COMMAND | CMD | EXEC | EXE | EXECUTABLE | BINARY | BIN | SHELL | INTERPRETER | LAUNCHER
    | WRAPPER | PLUGINS? | MODULES? | EXTENSIONS? | HOOKS? | INIT | STARTUP | LOADER | REQUIRE
    | IMPORT | REGISTRY | MIRROR | INDEX | INDEX_URL | PROXY | CONFIG | CONFIG_FILE | CONF
    | CA_BUNDLE | CA_FILE | CA_CERTS? | CERT_FILE | CERT_DIR )
    """,
    re.VERBOSE,
)
# Languages, terminals, logs, modes and authors. `HOME` isn't one: programs read settings there.
_HARMLESS_NAMES: Final = frozenset(
    """
    LANG LANGUAGE TZ TERM COLORTERM NO_COLOR FORCE_COLOR CLICOLOR COLUMNS LINES
    LOG LOGLEVEL LOG_FORMAT DEBUG VERBOSE QUIET CI API_VERSION NODE_ENV NODE_NO_WARNINGS
    PYTHONUNBUFFERED PYTHONUTF8 PYTHONIOENCODING PYTHONDONTWRITEBYTECODE PYTHONHASHSEED
    GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
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
# Words that make a harmless last word doubtful: `SASS_BINARY_HOST`, `MY_REGISTRY_URL`.
_CODE_WORDS: Final = frozenset(
    """
    PATH PRELOAD LOADER LIB LIBRARY MODULE MODULES PLUGIN PLUGINS EXTENSION EXTENSIONS HOOK HOOKS
    INDEX REGISTRY MIRROR REPO REPOSITORY PACKAGE PACKAGES CHANNELS DOWNLOAD DIST BINARY BIN CDN
    PROXY CA CERT CERTS INSTALL UPDATE UPGRADE
    COMMAND CMD EXEC EXECUTABLE PROGRAM SCRIPT SHELL INIT STARTUP
    OPTS OPTIONS FLAGS ARGS ARGUMENTS CONFIG RC
    """.split()
)
_OTHER: Final = re.compile(r"[^A-Z0-9_]+")
_WORD_BREAK: Final = re.compile(r"[_.-]+|(?<=[a-z0-9])(?=[A-Z])")


def redirects_code(name: str) -> bool:
    """Return True if an environment variable is known to change which code a command runs.

    Args:
        name: its name. Signs between words count alike, as in `npm-config-registry`.
    """
    plain = _OTHER.sub("_", name.upper())
    if plain in _HARMLESS_NAMES:
        return False
    return (
        plain in _CODE_NAMES
        or _FAMILIES.fullmatch(plain) is not None
        or _CODE_ENDINGS.fullmatch(plain) is not None
    )


def can_redirect_code(name: str) -> bool:
    """Return True unless an environment variable is known not to change the code that is run.

    Whenever `redirects_code` is True, this is True too.

    Args:
        name: its name.
    """
    upper = name.upper()
    if upper in _HARMLESS_NAMES or re.fullmatch(r"LC_[A-Z]+", upper):
        return False
    if redirects_code(name) or not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        return True
    words = [word.upper() for word in _WORD_BREAK.split(name) if word]
    if not words or words[-1] not in _HARMLESS_LAST_WORDS:
        return True
    return _FAMILIES.fullmatch("_".join(words)) is not None or not _CODE_WORDS.isdisjoint(words)
