"""How a secret is recognized in a log or a trace: by the name of its member, or by its form.

This is a net, not a wall: a secret in plain words is not found.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MIN_SECRET", "SECRET_FORM", "SECRET_NAME"]

# By the name of a member, in any case and with any separators: api_key, accessToken, X-Api-Key.
SECRET_NAME: Final = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|api.?key|private.?key|access.?key"
    r"|authorization|cookie|bearer|(?:^|[\W_])(?:otp|pin)(?:$|[\W_])|^key$",
    re.IGNORECASE,
)
# By the form of a text. Each alternative begins with fixed characters, and repeats one class only,
# so that searching takes linear time.
SECRET_FORM: Final = re.compile(
    r"""
    -----BEGIN[ ][A-Z ]{0,40}PRIVATE[ ]KEY-----[^-]*(?:-----END[ ][A-Z ]{0,40}PRIVATE[ ]KEY-----)?
    | (?i:\bbearer[ ]+)[\w.~+/=-]{8,}
    | (?i:\bbasic[ ]+)[A-Za-z0-9+/]{12,}={0,2}
    | \beyJ[\w-]{8,}\.[\w.-]*                     # JSON Web Tokens
    | \b(?:sk|pk|rk)[-_][\w-]{16,}                # OpenAI, Anthropic, Stripe
    | \b(?:gh[a-z]_|github_pat_|glpat-|npm_|pypi-|hf_)[\w-]{16,}
    | \bxox[a-z]-[\w-]{10,}                       # Slack
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b               # AWS
    | \bAIza[\w-]{30,}                            # Google
    | (?<=://)[^\s/@:]{1,256}:[^\s/@]{1,256}(?=@) # user and password of a URL
    """,
    re.VERBOSE,
)
MIN_SECRET: Final = 6  # characters; a shorter one would match inside ordinary words
