"""Environment variables that can make a program run other code, and those that cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host._variables_of_code import can_redirect_code, redirects_code

REDIRECTING = """
PATH Path PATHEXT LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES GCONV_PATH LOCPATH
HOME USERPROFILE APPDATA XDG_CONFIG_HOME TMPDIR TEMP SHELL COMSPEC BASH_ENV ENV ZDOTDIR PS4 IFS
PROMPT_COMMAND EDITOR VISUAL PAGER BROWSER LESSOPEN
PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONWARNINGS PYTHON_TOKEN VIRTUAL_ENV PIP_INDEX_URL
PIP_EXTRA_INDEX_URL pip_index_url PIP_CONFIG_FILE UV_INDEX_URL UV_DEFAULT_INDEX UV_INDEX_X_PASSWORD
UV_PYTHON POETRY_REPOSITORIES_X_URL
NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS npm_config_registry NPM_CONFIG_USERCONFIG npm_config_url
npm_config__authToken YARN_REGISTRY NVM_NODEJS_ORG_MIRROR DENO_DIR DENO_AUTH_TOKENS BUN_INSTALL
ELECTRON_RUN_AS_NODE
RUBYOPT RUBYLIB GEM_HOME BUNDLE_GEMFILE PERL5OPT PERL5LIB PERL5DB PHPRC PHP_INI_SCAN_DIR LUA_INIT
JAVA_HOME JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH MAVEN_OPTS JDBC_URL
GOFLAGS GOPROXY GOPRIVATE GO_HOST CARGO_HOME RUSTC_WRAPPER DOTNET_STARTUP_HOOKS CORECLR_PROFILER
NUGET_URL
GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS GIT_CONFIG_COUNT GIT_EXEC_PATH GIT_TEMPLATE_DIR SSH_ASKPASS
DOCKER_HOST CONTAINER_HOST KUBECONFIG HELM_PLUGINS NIX_PATH HOMEBREW_BOTTLE_DOMAIN
HTTP_PROXY https_proxy ALL_PROXY CURL_HOME SSL_CERT_FILE OPENSSL_CONF REQUESTS_CA_BUNDLE
PLAYWRIGHT_DOWNLOAD_HOST PUPPETEER_DOWNLOAD_BASE_URL SASS_BINARY_HOST MY_REGISTRY_URL X_PLUGIN_NAME
MY_PATH MY_ENV FOO FOO_OPTS FOO_COMMAND FOO_PRELOAD KEY=X
""".split()
HARMLESS = """
LANG LANGUAGE LC_ALL LC_CTYPE TZ TERM NO_COLOR LOG_LEVEL DEBUG CI NODE_ENV PORT HOST
GITHUB_TOKEN GITHUB_PERSONAL_ACCESS_TOKEN OPENAI_API_KEY apiKey Github-Token my.secret TOKEN
AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION AWS_SESSION_TOKEN CLIENT_SECRET
DB_PASSWORD PGUSER_NAME POSTGRES_HOST POSTGRES_PORT DATABASE_URL REDIS_URL OPENAI_BASE_URL
SLACK_TEAM_ID NOTION_DATABASE S3_BUCKET REQUEST_TIMEOUT MAX_RETRIES PAGE_SIZE USER_EMAIL
GOOGLE_API_KEY HOME_ASSISTANT_TOKEN MEMORY_LIMIT LLM_MODEL FEATURE_ENABLED SENTRY_DSN
""".split()


def test_names_that_are_not_known_as_harmless_can_redirect_code() -> None:
    names = [*REDIRECTING, "", "LD_\n", "\nTOKEN", "TOKEN\n", "TOKEN\u212a"]
    assert [name for name in names if not can_redirect_code(name)] == []


def test_names_of_data_cannot_redirect_code() -> None:
    names = [*HARMLESS, *map(str.lower, HARMLESS)]
    assert [name for name in names if can_redirect_code(name)] == []


def test_case_of_a_name_does_not_count() -> None:
    names = [name for name in REDIRECTING if "." not in name]
    for name in [*map(str.lower, names), *map(str.upper, names)]:
        assert can_redirect_code(name), name


@given(
    st.lists(
        st.sampled_from([*REDIRECTING, *HARMLESS, "MY", "x", "npm-config", "TS_NODE", "\u017f"]),
        min_size=1,
        max_size=3,
    ).map("_".join)
)
def test_name_that_redirects_code_is_marked(name: str) -> None:
    """A question about a server has to show all that an administrator's list refuses."""
    assert can_redirect_code(name) or not redirects_code(name)


@pytest.mark.parametrize("name", [*HARMLESS, "FOO", "MY_ENV", "WORKSPACE", "PYTHONUNBUFFERED"])
def test_name_of_unknown_purpose_redirects_nothing(name: str) -> None:
    assert not redirects_code(name)


def test_name_that_is_known_to_redirect_code_is_found_in_any_case() -> None:
    others = {"SASS_BINARY_HOST", "MY_REGISTRY_URL", "X_PLUGIN_NAME", "MY_ENV", "FOO", "KEY=X"}
    assert {name for name in REDIRECTING if not redirects_code(name)} == others
    assert redirects_code("npm-config-registry")
    assert redirects_code("ld.preload")
