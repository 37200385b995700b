"""Examples of configuration files out of the documentation of the programs that own them.

Each has its source, the path under which it is read, and the servers that it means.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

_CLAUDE_CODE: Final = "code.claude.com/docs/en/mcp"
_MANAGED: Final = "code.claude.com/docs/en/managed-mcp"
_DESKTOP: Final = "modelcontextprotocol.io/docs/develop/connect-local-servers"
_CURSOR: Final = "cursor.com/docs/mcp"
_VSCODE: Final = "code.visualstudio.com/docs/agents/reference/mcp-configuration"
_CODEX: Final = "developers.openai.com/codex/mcp"
_GEMINI: Final = "geminicli.com/docs/tools/mcp-server"


class Example(NamedTuple):
    """An example.

    `servers` has the expected fields of each server, by name, and `problems` the beginning of each
    problem.
    """

    source: str
    format: str
    file: str
    text: str
    servers: dict[str, dict[str, Any]]
    problems: tuple[str, ...] = ()


EXAMPLES: Final = (
    Example(
        _CLAUDE_CODE + "#environment-variable-expansion-in-mcp-json",
        "claude-code",
        ".mcp.json",
        """\
{
  "mcpServers": {
    "api-server": {
      "type": "http",
      "url": "${API_BASE_URL:-https://api.example.com}/mcp",
      "headers": {
        "Authorization": "Bearer ${API_KEY}"
      }
    }
  }
}
""",
        {
            "api-server": {
                "transport": "http",
                "url": "${API_BASE_URL:-https://api.example.com}/mcp",
                "headers": {"Authorization": "Bearer ${API_KEY}"},
            }
        },
    ),
    Example(
        _CLAUDE_CODE + "#project-scope",
        "claude-code",
        ".mcp.json",
        """\
{
  "mcpServers": {
    "shared-server": {
      "command": "/path/to/server",
      "args": [],
      "env": {}
    }
  }
}
""",
        {"shared-server": {"transport": "stdio", "command": "/path/to/server", "env": {}}},
    ),
    Example(
        _MANAGED,
        "claude-code",
        "managed-mcp.json",
        """\
{
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/"
    },
    "company-internal": {
      "type": "stdio",
      "command": "/usr/local/bin/company-mcp-server",
      "args": ["--config", "/etc/company/mcp-config.json"],
      "env": {
        "COMPANY_API_URL": "https://internal.company.com"
      }
    }
  }
}
""",
        {
            "github": {"transport": "http", "url": "https://api.githubcopilot.com/mcp/"},
            "company-internal": {
                "transport": "stdio",
                "args": ("--config", "/etc/company/mcp-config.json"),
                "env": {"COMPANY_API_URL": "https://internal.company.com"},
            },
        },
    ),
    Example(
        _DESKTOP,
        "claude-desktop",
        "claude_desktop_config.json",
        """\
{
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": [
        "-y",
        "@modelcontextprotocol/server-filesystem",
        "/Users/username/Desktop",
        "/Users/username/Downloads"
      ]
    }
  }
}
""",
        {
            "filesystem": {
                "transport": "stdio",
                "command": "npx",
                "args": (
                    "-y",
                    "@modelcontextprotocol/server-filesystem",
                    "/Users/username/Desktop",
                    "/Users/username/Downloads",
                ),
            }
        },
    ),
    Example(
        _DESKTOP + " (Windows)",
        "claude-desktop",
        r"C:\Users\u\AppData\Roaming\Claude\claude_desktop_config.json",
        r"""{
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": [
        "-y",
        "@modelcontextprotocol/server-filesystem",
        "C:\\Users\\username\\Desktop",
        "C:\\Users\\username\\Downloads"
      ]
    }
  }
}
""".replace("\n", "\r\n"),
        {
            "filesystem": {
                "command": "npx",
                "args": (
                    "-y",
                    "@modelcontextprotocol/server-filesystem",
                    "C:\\Users\\username\\Desktop",
                    "C:\\Users\\username\\Downloads",
                ),
            }
        },
    ),
    Example(
        _DESKTOP + " (troubleshooting)",
        "claude-desktop",
        "claude_desktop_config.json",
        r"""{
  "mcpServers": {
    "brave-search": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-brave-search"],
      "env": {
        "APPDATA": "C:\\Users\\user\\AppData\\Roaming\\",
        "BRAVE_API_KEY": "..."
      }
    }
  }
}
""",
        {
            "brave-search": {
                "env": {"APPDATA": "C:\\Users\\user\\AppData\\Roaming\\", "BRAVE_API_KEY": "..."}
            }
        },
    ),
    Example(
        _CURSOR + "#using-mcp-json",
        "cursor",
        ".cursor/mcp.json",
        """\
{
  "mcpServers": {
    "server-name": {
      "url": "http://localhost:3000/mcp",
      "headers": {
        "API_KEY": "value"
      }
    }
  }
}
""",
        {
            "server-name": {
                "transport": "http",
                "url": "http://localhost:3000/mcp",
                "headers": {"API_KEY": "value"},
            }
        },
    ),
    Example(
        _CURSOR + "#config-interpolation",
        "cursor",
        "/home/u/.cursor/mcp.json",
        """\
{
  "mcpServers": {
    "local-server": {
      "command": "python",
      "args": ["${workspaceFolder}/tools/mcp_server.py"],
      "env": {
        "API_KEY": "${env:API_KEY}"
      }
    }
  }
}
""",
        {
            "local-server": {
                "transport": "stdio",
                "args": ("${workspaceFolder}/tools/mcp_server.py",),
                "env": {"API_KEY": "${env:API_KEY}"},
            }
        },
    ),
    Example(
        _CURSOR + "#static-oauth-for-remote-servers",
        "cursor",
        ".cursor/mcp.json",
        """\
{
  "mcpServers": {
    "oauth-server": {
      "url": "https://api.example.com/mcp",
      "auth": {
        "CLIENT_ID": "your-oauth-client-id",
        "CLIENT_SECRET": "your-client-secret",
        "scopes": ["read", "write"]
      }
    }
  }
}
""",
        {
            "oauth-server": {
                "transport": "http",
                "extra": {
                    "auth": {
                        "CLIENT_ID": "your-oauth-client-id",
                        "CLIENT_SECRET": "your-client-secret",
                        "scopes": ["read", "write"],
                    }
                },
            }
        },
    ),
    Example(
        _VSCODE + "#input-variables-for-sensitive-data",
        "vscode",
        ".vscode/mcp.json",
        """\
{
    "inputs": [
        {
            "type": "promptString",
            "id": "perplexity-key",
            "description": "Perplexity API Key",
            "password": true
        }
    ],
    "servers": {
        "perplexity": {
            "type": "stdio",
            "command": "npx",
            "args": [
                "-y",
                "server-perplexity-ask"
            ],
            "env": {
                "PERPLEXITY_API_KEY": "${input:perplexity-key}"
            }
        }
    }
}
""",
        {
            "perplexity": {
                "transport": "stdio",
                "args": ("-y", "server-perplexity-ask"),
                "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}"},
            }
        },
    ),
    Example(
        _VSCODE + "#sandbox-configuration",
        "vscode",
        ".vscode/mcp.json",
        """\
{
    "servers": {
        "myServer": {
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "@example/mcp-server"],
            "sandboxEnabled": true,
            "sandbox": {
                "filesystem": {
                    "allowWrite": ["${workspaceFolder}"],
                    "denyRead": ["${userHome}/.ssh"]
                },
                "network": {
                    "allowedDomains": ["api.example.com", "*.cdn.example.com"]
                }
            }
        }
    }
}
""",
        {},
        problems=(
            ".vscode/mcp.json:7:13: servers.myServer.sandboxEnabled: restricts the server",
            ".vscode/mcp.json:8:13: servers.myServer.sandbox: restricts the server",
        ),
    ),
    Example(
        "vscode-docs, agent-customization/mcp-servers.md",
        "vscode",
        ".vscode/mcp.json",
        """\
{
    "servers": {
        "github": {
            "type": "http",
            "url": "https://api.githubcopilot.com/mcp"
        },
        "playwright": {
            "command": "npx",
            "args": ["-y", "@microsoft/mcp-server-playwright"]
        }
    }
}
""",
        {
            "github": {"transport": "http", "url": "https://api.githubcopilot.com/mcp"},
            "playwright": {"transport": "stdio", "command": "npx"},
        },
    ),
    Example(
        _CODEX,
        "codex",
        "/home/u/.codex/config.toml",
        """\
[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp"]
env_vars = ["LOCAL_TOKEN"]

[mcp_servers.context7.env]
MY_ENV_VAR = "MY_ENV_VALUE"
""",
        {
            "context7": {
                "transport": "stdio",
                "args": ("-y", "@upstash/context7-mcp"),
                "env": {"MY_ENV_VAR": "MY_ENV_VALUE"},
                "forwarded": ("LOCAL_TOKEN",),
            }
        },
    ),
    Example(
        _CODEX,
        "codex",
        "config.toml",
        """\
[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_OAUTH_TOKEN"
http_headers = { "X-Figma-Region" = "us-east-1" }
""",
        {
            "figma": {
                "transport": "http",
                "bearer_variable": "FIGMA_OAUTH_TOKEN",
                "headers": {"X-Figma-Region": "us-east-1"},
            }
        },
    ),
    Example(
        _CODEX,
        "codex",
        "config.toml",
        """\
[mcp_servers.chrome_devtools]
url = "http://localhost:3000/mcp"
enabled_tools = ["open", "screenshot"]
disabled_tools = ["screenshot"] # applied after enabled_tools
default_tools_approval_mode = "prompt"
startup_timeout_sec = 20
tool_timeout_sec = 45
enabled = true

[mcp_servers.chrome_devtools.tools.open]
approval_mode = "approve"
""",
        {
            "chrome_devtools": {
                "connect_timeout": 20.0,
                "call_timeout": 45.0,
                "disabled": False,
                "allowed_tools": ("open", "screenshot"),
                "denied_tools": ("screenshot",),
                "asks_always": True,
                "extra": {
                    "default_tools_approval_mode": "prompt",
                    "tools": {"open": {"approval_mode": "approve"}},
                },
            }
        },
    ),
    Example(
        _GEMINI + "#python-mcp-server-stdio",
        "gemini",
        ".gemini/settings.json",
        """\
{
  "mcpServers": {
    "pythonTools": {
      "command": "python",
      "args": ["-m", "my_mcp_server", "--port", "8080"],
      "cwd": "./mcp-servers/python",
      "env": {
        "DATABASE_URL": "$DB_CONNECTION_STRING",
        "API_KEY": "${EXTERNAL_API_KEY}"
      },
      "timeout": 15000
    }
  }
}
""",
        {
            "pythonTools": {
                "transport": "stdio",
                "cwd": "./mcp-servers/python",
                "env": {
                    "DATABASE_URL": "$DB_CONNECTION_STRING",
                    "API_KEY": "${EXTERNAL_API_KEY}",
                },
                "call_timeout": 15.0,
            }
        },
    ),
    Example(
        _GEMINI + "#http-based-mcp-server-with-custom-headers",
        "gemini",
        ".gemini/settings.json",
        """\
{
  "mcpServers": {
    "httpServerWithAuth": {
      "httpUrl": "http://localhost:3000/mcp",
      "headers": {
        "Authorization": "Bearer your-api-token",
        "X-Custom-Header": "custom-value",
        "Content-Type": "application/json"
      },
      "timeout": 5000
    }
  }
}
""",
        {"httpServerWithAuth": {"transport": "http", "url": "http://localhost:3000/mcp"}},
    ),
    Example(
        _GEMINI + "#mcp-server-with-tool-filtering",
        "gemini",
        ".gemini/settings.json",
        """\
{
  "mcpServers": {
    "filteredServer": {
      "command": "python",
      "args": ["-m", "my_mcp_server"],
      "includeTools": ["safe_tool", "file_reader", "data_processor"],
      // "excludeTools": ["dangerous_tool", "file_deleter"],
      "timeout": 30000
    },
    "discoveredServer": {
      "url": "https://api.example.com/sse"
    }
  }
}
""",
        {
            "filteredServer": {
                "allowed_tools": ("safe_tool", "file_reader", "data_processor"),
            },
            "discoveredServer": {"transport": "sse"},
        },
    ),
)
