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
# Read on 2026-11-29.
_COPILOT: Final = "docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers"
_WINDSURF: Final = "docs.windsurf.com/windsurf/cascade/mcp"
_CLINE: Final = "docs.cline.bot/mcp/adding-and-configuring-servers"
_LM_STUDIO: Final = "lmstudio.ai/docs/app/mcp"
_ZED: Final = "zed.dev/docs/ai/mcp"
_OPENCODE: Final = "opencode.ai/v1/docs/mcp-servers"
_OPENCODE_2: Final = "opencode.ai/v2/docs/mcp-servers"
_VSCODE_SETTINGS: Final = (
    "code.visualstudio.com/docs/copilot/chat/mcp-servers (as of 2025-05-08, in vscode-docs)"
)
_GOOSE: Final = "goose-docs.ai/docs/guides/config-files"
_GOOSE_FILESYSTEM = {
    "transport": "stdio",
    "command": "npx",
    "args": ("-y", "@modelcontextprotocol/server-filesystem", "/tmp"),
    "call_timeout": 300.0,
    "extra": {"name": "filesystem"},
}
_ZED_PERMISSIONS: Final = "zed.dev/docs/ai/tool-permissions"

# Where a call's timeout is documented, a file with 45, and what this means in seconds. None is less
# than a second, which is ignored.
TIMEOUTS: Final = (
    (_CLAUDE_CODE + " (ms, ignored below 1000)", ".mcp.json", "timeout", None),
    (_GEMINI + "#optional (ms)", ".gemini/settings.json", "timeout", None),
    (
        "github.com/github/copilot-sdk, McpServerConfig (ms)",
        ".copilot/mcp-config.json",
        "timeout",
        None,
    ),
    (_CODEX + " (seconds)", "config.toml", "tool_timeout_sec", 45.0),
    (_CLINE + " (seconds)", "cline_mcp_settings.json", "timeout", 45.0),
    (_GOOSE + " (seconds)", "goose/config.json", "timeout", 45.0),
    (
        "zed crates/settings_content, context_server_timeout (seconds)",
        ".zed/settings.json",
        "timeout",
        45.0,
    ),
)


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
    Example(
        _COPILOT + "#editing-the-configuration-file",
        "copilot-cli",
        "/home/u/.copilot/mcp-config.json",
        """\
{
  "mcpServers": {
    "playwright": {
      "type": "local",
      "command": "npx",
      "args": ["@playwright/mcp@latest"],
      "env": {},
      "tools": ["*"]
    },
    "context7": {
      "type": "http",
      "url": "https://mcp.context7.com/mcp",
      "headers": {
        "CONTEXT7_API_KEY": "YOUR-API-KEY"
      },
      "tools": ["*"]
    }
  }
}
""",
        {
            "playwright": {
                "transport": "stdio",
                "command": "npx",
                "args": ("@playwright/mcp@latest",),
                "allowed_tools": None,
            },
            "context7": {
                "transport": "http",
                "headers": {"CONTEXT7_API_KEY": "YOUR-API-KEY"},
                "allowed_tools": None,
            },
        },
    ),
    Example(
        _COPILOT + "#adding-per-repository-mcp-servers",
        "claude-code",
        ".mcp.json",
        """\
{
  "mcpServers": {
    "playwright": {
      "type": "local",
      "command": "npx",
      "args": ["@playwright/mcp@latest"]
    }
  }
}
""",
        {"playwright": {"transport": "stdio", "command": "npx"}},
    ),
    Example(
        _WINDSURF + "#mcp-config-json",
        "windsurf",
        "/home/u/.codeium/windsurf/mcp_config.json",
        """\
{
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": [
        "-y",
        "@modelcontextprotocol/server-github"
      ],
      "env": {
        "GITHUB_PERSONAL_ACCESS_TOKEN": "<YOUR_PERSONAL_ACCESS_TOKEN>"
      }
    }
  }
}
""",
        {"github": {"transport": "stdio", "args": ("-y", "@modelcontextprotocol/server-github")}},
    ),
    Example(
        _WINDSURF + "#config-interpolation",
        "windsurf",
        r"C:\Users\u\.codeium\windsurf\mcp_config.json",
        """\
{
  "mcpServers": {
    "remote-http-mcp": {
      "serverUrl": "https://your-server.com/mcp",
      "headers": {
        "Authorization": "Bearer ${env:AUTH_TOKEN}"
      }
    }
  }
}
""",
        {
            "remote-http-mcp": {
                "transport": "http",
                "url": "https://your-server.com/mcp",
                "headers": {"Authorization": "Bearer ${env:AUTH_TOKEN}"},
            }
        },
    ),
    Example(
        _CLINE + "#stdio-transport-local-servers",
        "cline",
        "/home/u/.cline/data/settings/cline_mcp_settings.json",
        """\
{
  "mcpServers": {
    "local-server": {
      "command": "node",
      "args": ["/path/to/server.js"],
      "env": {
        "API_KEY": "your_api_key"
      },
      "alwaysAllow": ["tool1", "tool2"],
      "disabled": false
    }
  }
}
""",
        {
            "local-server": {
                "transport": "stdio",
                "env": {"API_KEY": "your_api_key"},
                "extra": {"alwaysAllow": ["tool1", "tool2"]},
            }
        },
    ),
    Example(
        _CLINE + "#sse-transport-remote-servers",
        "cline",
        "cline_mcp_settings.json",
        """\
{
  "mcpServers": {
    "remote-server": {
      "url": "https://your-server-url.com/mcp",
      "headers": {
        "Authorization": "Bearer your-token"
      },
      "alwaysAllow": ["tool3"],
      "disabled": false
    }
  }
}
""",
        {"remote-server": {"transport": "sse", "extra": {"alwaysAllow": ["tool3"]}}},
    ),
    Example(
        _LM_STUDIO,
        "lm-studio",
        "/home/u/.lmstudio/mcp.json",
        """\
{
  "mcpServers": {
    "hf-mcp-server": {
      "url": "https://huggingface.co/mcp",
      "headers": {
        "Authorization": "Bearer <YOUR_HF_TOKEN>"
      }
    }
  }
}
""",
        {
            "hf-mcp-server": {
                "transport": "http",
                "url": "https://huggingface.co/mcp",
                "headers": {"Authorization": "Bearer <YOUR_HF_TOKEN>"},
            }
        },
    ),
    Example(
        _LM_STUDIO + "/deeplink (without a member around the servers)",
        "claude-code",
        "copied.json",
        """\
{
  "hf-mcp-server": {
    "url": "https://huggingface.co/mcp",
    "headers": {
      "Authorization": "Bearer <YOUR_HF_TOKEN>"
    }
  }
}
""",
        {"hf-mcp-server": {"transport": "http", "url": "https://huggingface.co/mcp"}},
    ),
    Example(
        _ZED + "#as-custom-servers",
        "zed",
        "/home/u/.config/zed/settings.json",
        """\
{
  "context_servers": {
    "local-mcp-server": {
      "command": "some-command",
      "args": ["arg-1", "arg-2"],
      "env": {}
    },
    "remote-mcp-server": {
      "url": "https://example.com/mcp",
      "headers": { "Authorization": "Bearer <token>" }
    },
    "remote-mcp-server-with-oauth": {
      "url": "https://mcp.example.com/mcp"
    }
  }
}
""",
        {
            "local-mcp-server": {"transport": "stdio", "args": ("arg-1", "arg-2")},
            "remote-mcp-server": {
                "transport": "http",
                "headers": {"Authorization": "Bearer <token>"},
            },
            "remote-mcp-server-with-oauth": {"transport": "http"},
        },
    ),
    Example(
        _ZED + " (of 2025, with a source)",
        "zed",
        ".zed/settings.json",
        """\
{
  // Zed settings
  "context_servers": {
    "your-mcp-server": {
      "source": "custom",
      "command": "some-command",
      "args": ["arg-1", "arg-2"],
      "env": {}
    }
  },
}
""",
        {"your-mcp-server": {"command": "some-command", "extra": {"source": "custom"}}},
    ),
    Example(
        _OPENCODE + "#local",
        "opencode",
        "opencode.jsonc",
        """\
{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "my-local-mcp-server": {
      "type": "local",
      // Or ["bun", "x", "my-mcp-command"]
      "command": ["npx", "-y", "my-mcp-command"],
      "enabled": true,
      "environment": {
        "MY_ENV_VAR": "my_env_var_value",
      },
    },
  },
}
""",
        {
            "my-local-mcp-server": {
                "transport": "stdio",
                "command": "npx",
                "args": ("-y", "my-mcp-command"),
                "env": {"MY_ENV_VAR": "my_env_var_value"},
                "disabled": False,
            }
        },
    ),
    Example(
        _OPENCODE + "#disabling-oauth",
        "opencode",
        "opencode.json",
        """\
{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "my-api-key-server": {
      "type": "remote",
      "url": "https://mcp.example.com/mcp",
      "oauth": false,
      "headers": {
        "Authorization": "Bearer {env:MY_API_KEY}"
      }
    }
  }
}
""",
        {
            "my-api-key-server": {
                "transport": "http",
                "headers": {"Authorization": "Bearer ${env:MY_API_KEY}"},
                "extra": {"oauth": False},
            }
        },
    ),
    Example(
        _OPENCODE_2 + "#configure-servers",
        "opencode",
        "opencode.jsonc",
        """\
{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "servers": {
      "my-server": {
        "type": "local",
        "command": ["npx", "-y", "example-mcp-server"],
        "disabled": true,
      },
    },
  },
}
""",
        {"my-server": {"args": ("-y", "example-mcp-server"), "disabled": True}},
    ),
    Example(
        _VSCODE_SETTINGS + "#add-an-mcp-server-to-your-user-settings",
        "vscode-settings",
        "/home/u/.config/Code/User/settings.json",
        """\
// settings.json
{
    "mcp": {
        "servers": {
            "my-mcp-server": {
                "type": "stdio",
                "command": "my-command",
                "args": []
            }
        }
    },
}
""",
        {"my-mcp-server": {"transport": "stdio", "command": "my-command", "args": ()}},
    ),
    Example(
        _GOOSE + "#extensions-configuration (as JSON)",
        "goose",
        "servers.json",
        """\
{
  "extensions": {
    "developer": {
      "type": "builtin",
      "name": "developer",
      "enabled": true,
      "bundled": true,
      "timeout": 300
    },
    "filesystem": {
      "type": "stdio",
      "name": "filesystem",
      "enabled": true,
      "cmd": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"],
      "env_keys": [],
      "envs": {},
      "timeout": 300
    },
    "remote-tools": {
      "type": "streamable_http",
      "name": "remote-tools",
      "enabled": true,
      "uri": "https://example.com/mcp",
      "headers": {},
      "env_keys": [],
      "envs": {},
      "timeout": 300
    }
  }
}
""",
        {
            "filesystem": _GOOSE_FILESYSTEM,
            "remote-tools": {
                "transport": "http",
                "url": "https://example.com/mcp",
                "extra": {"name": "remote-tools"},
            },
        },
        problems=(
            'servers.json:4:7: extensions.developer.type: is "builtin", which is no transport',
        ),
    ),
    # goose writes its file with serde_yaml: block style, no anchors, single quotes where needed.
    Example(
        _GOOSE + "#extensions-configuration",
        "goose",
        "/home/u/.config/goose/config.yaml",
        """\
GOOSE_PROVIDER: anthropic
GOOSE_MODE: smart_approve
GOOSE_TEMPERATURE: 0.7

extensions:
  developer:
    type: builtin
    name: developer
    enabled: true
    timeout: 300
    bundled: true
  filesystem:
    type: stdio
    name: filesystem
    enabled: true
    cmd: npx
    args:
    - -y
    - '@modelcontextprotocol/server-filesystem'
    - /tmp
    env_keys: []
    envs: {}
    timeout: 300
  github:
    type: stdio
    name: GitHub
    enabled: false
    cmd: npx
    args: [-y, "@modelcontextprotocol/server-github"]
    env_keys:
    - GITHUB_PERSONAL_ACCESS_TOKEN
    timeout: 60
    available_tools: []
  remote-tools:
    type: streamable_http
    name: remote-tools
    enabled: true
    uri: https://example.com/mcp
    headers:
      Authorization: Bearer ${TOKEN}
    env_keys: []
    envs: {}
    timeout: 300
""",
        {
            "filesystem": _GOOSE_FILESYSTEM,
            "github": {
                "command": "npx",
                "args": ("-y", "@modelcontextprotocol/server-github"),
                "forwarded": ("GITHUB_PERSONAL_ACCESS_TOKEN",),
                "disabled": True,
                "allowed_tools": None,
                "call_timeout": 60.0,
                "extra": {"name": "GitHub"},
            },
            "remote-tools": {
                "transport": "http",
                "url": "https://example.com/mcp",
                "headers": {"Authorization": "Bearer ${TOKEN}"},
                "call_timeout": 300.0,
                "extra": {"name": "remote-tools"},
            },
        },
        problems=("/home/u/.config/goose/config.yaml:7:5: extensions.developer.type: is",),
    ),
    Example(
        _ZED_PERMISSIONS + "#mcp-tools",
        "zed",
        "zed/settings.json",
        """\
{
  "context_servers": { "github": { "url": "https://example.com/mcp" } },
  "agent": {
    "tool_permissions": {
      "tools": {
        "mcp:github:create_issue": {
          "default": "confirm"
        },
        "mcp:github:create_pull_request": {
          "default": "confirm"
        }
      }
    }
  }
}
""",
        {"github": {"asks_always": True, "denied_tools": ()}},
    ),
    Example(
        _ZED_PERMISSIONS + "#configuration (of other tools)",
        "zed",
        "zed/settings.json",
        """\
{
  "context_servers": { "github": { "url": "https://example.com/mcp" } },
  "agent": {
    "tool_permissions": {
      "default": "allow",
      "tools": {
        "fetch": {
          "default": "confirm",
          "always_allow": [{ "pattern": "docs\\\\.rs" }],
          "always_deny": [{ "pattern": "internal\\\\.company\\\\.com" }]
        }
      }
    }
  }
}
""",
        {"github": {"asks_always": False, "denied_tools": (), "allowed_tools": None}},
    ),
)
