"""Environment variables that decide which code an allowed command runs.

An administrator who allows `npx -y server` means the package of that name from the usual place. A
variable can make the same words run something else: it loads code into the program, or says where
the program, its packages, their index or its settings are. In doubt a variable counts as such.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["redirects_code"]

# Variables of systems and shells.
_NAMES: Final = frozenset(
    """
    PATH PATHEXT HOME USERPROFILE HOMEDRIVE HOMEPATH APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES
    SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PSMODULEPATH TMPDIR TMP TEMP PWD OLDPWD SHELL ENV BASH_ENV
    ZDOTDIR IFS CDPATH PS4 PROMPT_COMMAND SHELLOPTS BASHOPTS EDITOR VISUAL PAGER BROWSER LESSOPEN
    LESSCLOSE MANPATH GLIBC_TUNABLES GCONV_PATH LOCPATH NLSPATH HOSTALIASES LOCALDOMAIN RES_OPTIONS
    CLASSPATH TCLLIBPATH PHPRC SSLKEYLOGFILE CURL_CA_BUNDLE AWS_CA_BUNDLE
    """.split()
)
# Families of variables: of the loaders, and of all that starts programs or fetches packages.
_FAMILIES: Final = re.compile(
    r"""
    (?: PYTHON | PERL | RUBY | LUA | GO(?:PATH|FLAGS|ROOT|BIN|PROXY|PRIVATE|NO|SUMDB|ENV|TOOL|WORK
      | CACHE | MODCACHE | EXPERIMENT | DEBUG | VCS) ).*
    | (?:
      LD | DYLD | MALLOC | BASH_FUNC | XDG | SSL | OPENSSL | REQUESTS | CURL
    | PIP | PIPX | UV | UVX | VIRTUAL_ENV | VIRTUALENV | CONDA | MAMBA | POETRY | PDM | HATCH
    | PYENV | NODE | NPM | NPX | PNPM | YARN | BUN | DENO | COREPACK | NVM | VOLTA | FNM | TSX
    | TS_NODE
    | ELECTRON | PLAYWRIGHT | PUPPETEER | CHROME | GEM | BUNDLE | BUNDLER | RBENV | PHP | COMPOSER
    | R | JULIA | ERL | ELIXIR | MIX | HEX | GHC | CABAL | STACK | OCAML | OPAM | JAVA | JDK | JRE
    | JVM | MAVEN | MVN | GRADLE | SBT | KOTLIN | SCALA | CLOJURE | DOTNET | NUGET | COMPLUS
    | CORECLR | COR | MSBUILD | GO | CARGO | RUST | RUSTUP | RUSTC | ZIG | GIT | SSH | SVN | HG
    | DOCKER | PODMAN | CONTAINER | CONTAINERS | BUILDKIT | KUBE | KUBECONFIG | HOMEBREW | NIX
    | ASDF | MISE | RTX | PROTO | SNAP | FLATPAK | GTK | GDK | QT | GIO | GST | VK
    ) (?:_.*)?
    """,
    re.VERBOSE,
)
# What these families have in many files, and what loads nothing.
_HARMLESS: Final = frozenset(
    """
    NODE_ENV NODE_NO_WARNINGS PYTHONUNBUFFERED PYTHONUTF8 PYTHONIOENCODING PYTHONDONTWRITEBYTECODE
    PYTHONHASHSEED GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
    """.split()
)
# The last word of names of all other programs.
_ENDINGS: Final = re.compile(
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
_OTHER: Final = re.compile(r"[^A-Z0-9]+")


def redirects_code(name: str) -> bool:
    """Return True if a variable can make a command run other code than its words say.

    Args:
        name: the name of the variable. Letters count alike in both cases, as on Windows, and so do
            signs between words, as in `npm-config-registry`.
    """
    plain = _OTHER.sub("_", name.upper()).strip("_")
    if plain in _HARMLESS:
        return False
    return plain in _NAMES or any(each.fullmatch(plain) for each in (_FAMILIES, _ENDINGS))
