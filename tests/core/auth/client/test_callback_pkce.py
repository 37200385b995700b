"""PKCE: the example of RFC 7636, appendix B, and the size of random values."""

from __future__ import annotations

import pytest

from mcp_core.auth import Secret
from mcp_core.auth.client._callback import code_challenge, new_secret


@pytest.mark.requirement("AF-1", "AF-2")
def test_code_challenge_example_of_rfc_7636() -> None:
    verifier = Secret("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    assert code_challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_new_secret_has_256_bits() -> None:
    secret = new_secret(lambda size: b"\xfb" * size)
    assert secret.reveal() == "-_v7" * 10 + "-_s"
