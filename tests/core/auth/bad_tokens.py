"""Invalid tokens: attacks that worked against other libraries, and plain mistakes.

Each row is a name, a token, and words of the error text. `test_jwt.py` runs all of them against the
verifier, with the keys of `minting.py`.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64decode
from typing import Any

from joserfc.jwk import ECKey, OctKey
from joserfc.jws import JWSRegistry

from tests.core.auth.minting import (
    CLAIMS,
    EC,
    EC384,
    ED,
    ISSUER,
    NOW,
    RESOURCE,
    RSA,
    SECRET,
    STRANGER,
    STRANGER_RSA,
    as_bytes,
    b64,
    forge,
    token,
)

Row = tuple[str, str, str]

GOOD = token()
HEAD = {"alg": "ES256", "kid": "ec", "typ": "at+jwt"}
H, P, S = GOOD.split(".")
RAW = urlsafe_b64decode(S + "==")

NOT_JWS = "not have the form"
NOT_BASE64 = "base64url"
NO_ALG = "algorithm that is not allowed"
HEADER = "header of the token cannot be read"
SIGNATURE = "signature of the token is wrong"
UNKNOWN = "does not publish"
EXTENSION = "extension"
ENCRYPTED = "encrypted"
CLAIMS_UNREADABLE = "claims of the token cannot be read"
KIND = "not an access token"
OTHER_KEY = "do not belong together"


def _hmac(secret: bytes, alg: str, header: Any, payload: Any = CLAIMS) -> str:
    # Bypasses joserfc's check for a public key as a secret: an attacker's program has none.
    signed = f"{b64(as_bytes(header))}.{b64(as_bytes(payload))}"
    key = OctKey(secret, secret)
    return f"{signed}.{b64(JWSRegistry.algorithms[alg].sign(signed.encode(), key))}"


def _unsigned(header: Any, payload: Any = CLAIMS, signature: str = "") -> str:
    return f"{b64(as_bytes(header))}.{b64(as_bytes(payload))}.{signature}"


def no_algorithm() -> list[Row]:
    rows = [
        (f"alg {alg!r} {name}", _unsigned({"alg": alg, "kid": "ec"}, signature=signature), NO_ALG)
        for alg in (
            "none",
            "None",
            "NONE",
            "nOnE",
            "none ",
            "",
            "null",
            "HS256\0",
            "ES256 ",
            "es256",
            "ES256K",
            "RS1",
            "ES255",
        )
        for name, signature in (("unsigned", ""), ("with a signature", S))
    ]
    rows += [
        (f"alg is {json.dumps(alg)}", _unsigned({"alg": alg}, signature=S), HEADER)
        for alg in (None, 1, True, [], ["ES256"], {}, {"ES256": 1})
    ]
    rows.append(("no alg", _unsigned({"kid": "ec"}, signature=S), HEADER))
    rows += [
        (f"a key management algorithm {alg}", _unsigned({"alg": alg}, signature=S), NO_ALG)
        for alg in ("RSA-OAEP", "RSA1_5", "dir", "A128KW", "ECDH-ES", "PBES2-HS256+A128KW")
    ]
    return rows


def confused_keys() -> list[Row]:
    spellings = {
        "PEM": RSA.as_pem(private=False),
        "PEM without its newline": RSA.as_pem(private=False).strip(),
        "DER": RSA.as_der(private=False),
        "JWK": json.dumps(RSA.as_dict(private=False)).encode(),
        "modulus": str(RSA.as_dict(private=False)["n"]).encode(),
        "EC PEM": EC.as_pem(private=False),
        "EC x": str(EC.as_dict(private=False)["x"]).encode(),
        "the kid": b"rsa",
        "a secret that others use": SECRET,
    }
    rows = [
        (f"{alg} with {name}", _hmac(secret, alg, {"alg": alg, "kid": "rsa"}), NO_ALG)
        for name, secret in spellings.items()
        for alg in ("HS256", "HS384", "HS512")
    ]
    for alg, key, words in (
        ("ES256", STRANGER, SIGNATURE),
        ("RS256", STRANGER_RSA, SIGNATURE),
        ("PS256", STRANGER_RSA, SIGNATURE),
    ):
        rows.append(
            (f"{alg} by a stranger", forge({"alg": alg, "kid": key.kid}, CLAIMS, key, alg), words)
        )
    rows += [
        (
            f"{alg} by a key that is named {kid}",
            forge({"alg": alg, "kid": kid}, CLAIMS, key, by),
            UNKNOWN,
        )
        for alg, kid, key, by in (
            ("RS256", "ec", RSA, "RS256"),
            ("ES256", "rsa", EC, "ES256"),
            ("ES256", "ec384", EC384, "ES384"),
            ("ES384", "ec", EC, "ES256"),
            ("ES512", "ec384", EC384, "ES384"),
            ("EdDSA", "ec", EC, "ES256"),
            ("EdDSA", "rsa", RSA, "RS256"),
            ("Ed25519", "ed448", ED, "Ed25519"),
            ("ES256", "ed", ED, "Ed25519"),
            ("RS256", "ed", ED, "Ed25519"),
            ("PS512", "ec521", RSA, "PS512"),
        )
    ]
    rows += [
        (
            f"says {claimed_alg} and is {alg}",
            forge({"alg": claimed_alg, "kid": key.kid}, CLAIMS, key, alg),
            SIGNATURE,
        )
        for claimed_alg, alg, key in (
            ("RS256", "PS256", RSA),
            ("PS256", "RS256", RSA),
            ("RS256", "RS512", RSA),
            ("RS384", "RS256", RSA),
            ("PS512", "PS256", RSA),
        )
    ]
    return rows


def injected_keys() -> list[Row]:
    """Return tokens that bring a key or a URL of one, each signed with the attacker's key."""
    jwk = STRANGER.as_dict(private=False)
    brought: dict[str, Any] = {
        "jwk": jwk,
        "jwk of another type": "https://evil.example/k",
        "jku": "https://evil.example/keys",
        "jku at the issuer": "https://as.example.com/uploads/keys",
        "jku with the issuer as user": "https://as.example.com@evil.example/keys",
        "jku to the metadata service": "http://169.254.169.254/latest/meta-data",
        "jku to a file": "file:///etc/passwd",
        "x5u": "https://evil.example/cert.pem",
        "x5c": [b64encode(b"certificate").decode()],
        "x5t": "AAAA",
        "x5t#S256": "AAAA",
    }
    rows = [
        (
            f"{name} brought along",
            forge(HEAD | {name.split()[0]: value}, CLAIMS, STRANGER),
            SIGNATURE,
        )
        for name, value in brought.items()
    ]
    both = HEAD | {
        "jwk": jwk,
        "jku": "https://evil.example/keys",
        "x5u": "https://evil.example/cert.pem",
    }
    rows.append(("everything brought along", forge(both, CLAIMS, STRANGER), SIGNATURE))
    rows += [
        (
            f"{name} and another kid",
            forge(HEAD | {name.split()[0]: value, "kid": "evil"}, CLAIMS, STRANGER),
            UNKNOWN,
        )
        for name, value in brought.items()
    ]
    return rows


def injected_names() -> list[Row]:
    kids = [
        "../../../../dev/null", "/dev/null", "/proc/sys/kernel/randomize_va_space",
        "file:///etc/passwd", "..\\..\\x",
        "https://evil.example/keys", "' OR 1=1 --", "ec' UNION SELECT 'x", "; cat /etc/passwd",
        "$(id)", "`id`", "|id",
        "ec\0", "ec\n", " ec", "ec ", "EC", "Ec", "e", "ecc", "", "0", "*", "%65c", "é", "\u202eec",
        "{{7*7}}", "${jndi:ldap://x}",
        "ec,rsa", "keys/ec", "x" * 4000,
    ]  # fmt: skip
    rows = [
        (f"kid {kid[:40]!r}", forge(HEAD | {"kid": kid}, CLAIMS, STRANGER), UNKNOWN) for kid in kids
    ]
    rows += [
        (f"kid is {json.dumps(kid)}", forge(HEAD | {"kid": kid}, CLAIMS, EC), HEADER)
        for kid in (0, True, ["ec"], {"kid": "ec"}, 1.5)
    ]
    rows.append(
        (
            "no kid among several keys",
            forge({"alg": "RS256"}, CLAIMS, STRANGER_RSA, "RS256"),
            SIGNATURE,
        )
    )
    return rows


def extensions() -> list[Row]:
    crits: list[Any] = [
        ["exp"], ["b64"], ["x"], ["alg"], ["http://example.com/UNDEFINED"], [], [""], [1], "exp",
        None, True, {}, ["cnf", "cnf"],
    ]  # fmt: skip
    rows = [
        (
            f"crit {json.dumps(crit)}",
            forge(HEAD | {"crit": crit, "exp": NOW + 60, "x": 1, "b64": True}, CLAIMS),
            EXTENSION,
        )
        for crit in crits
    ]
    rows += [
        (f"crit {json.dumps(crit)} alone", forge(HEAD | {"crit": crit}, CLAIMS), EXTENSION)
        for crit in crits[:5]
    ]
    for value in (False, True, None, "false"):
        rows.append((f"b64 {value}", forge(HEAD | {"b64": value}, CLAIMS), EXTENSION))
    rows.append(
        ("b64 false, critical", forge(HEAD | {"b64": False, "crit": ["b64"]}, CLAIMS), EXTENSION)
    )
    rows.append(
        (
            "b64 false, payload as it is",
            f"{b64(json.dumps(HEAD | {'b64': False}))}.{json.dumps(CLAIMS)}.{S}",
            NOT_JWS,
        )
    )
    for member, value in (("zip", "DEF"), ("zip", None), ("enc", "A256GCM"), ("enc", "none")):
        rows.append((f"{member} {value}", forge(HEAD | {member: value}, CLAIMS), ENCRYPTED))
    return rows


def encrypted() -> list[Row]:
    head = b64(json.dumps({"alg": "RSA-OAEP-256", "enc": "A256GCM"}))
    squeezed = b64(json.dumps({"alg": "dir", "enc": "A256GCM", "zip": "DEF"}))
    return [
        ("a JWE", f"{head}.AAAA.AAAA.AAAA.AAAA", ENCRYPTED),
        ("a JWE with zip", f"{squeezed}..AAAA.AAAA.AAAA", ENCRYPTED),
        ("a JWE of nothing", "....", ENCRYPTED),
        ("a JWE with our signature", f"{GOOD}.AAAA.AAAA", ENCRYPTED),
        ("a JWE header with three parts", f"{head}.{P}.{S}", ENCRYPTED),
        ("a JWE in JSON", json.dumps({"protected": head, "ciphertext": "AAAA"}), NOT_JWS),
        ("a JWS in JSON", json.dumps({"protected": H, "payload": P, "signature": S}), NOT_JWS),
        ("a JWT in a JWT", forge(HEAD | {"cty": "JWT"}, GOOD), CLAIMS_UNREADABLE),
    ]


def misshapen() -> list[Row]:
    rows = [
        ("empty", "", NOT_JWS),
        ("a word", "token", NOT_JWS),
        ("one dot", f"{H}.{P}", NOT_JWS),
        ("no dots", H + P + S, NOT_JWS),
        ("four parts", f"{GOOD}.AAAA", NOT_JWS),
        ("a dot in front", f".{GOOD}", NOT_JWS),
        ("a dot behind", f"{GOOD}.", NOT_JWS),
        ("six parts", f"{GOOD}.a.b.c", NOT_JWS),
        ("a thousand dots", "." * 1000, NOT_JWS),
        ("two tokens", f"{GOOD},{GOOD}", ENCRYPTED),
        ("no header", f".{P}.{S}", HEADER),
        ("no payload", f"{H}..{S}", SIGNATURE),
        ("no signature", f"{H}.{P}.", SIGNATURE),
        ("nothing between dots", "..", HEADER),
        ("header and signature exchanged", f"{S}.{P}.{H}", HEADER),
        ("payload and header exchanged", f"{P}.{H}.{S}", HEADER),
        ("a name in front", f"Bearer {GOOD}", NOT_BASE64),
        ("1 MB of letters", "A" * 1_000_000, "longer than"),
        ("1 MB token", token(more="x" * 750_000), "longer than"),
        ("one character too long", GOOD + "A" * (16 * 1024 + 1 - len(GOOD)), "longer than"),
        ("padding", f"{H}.{P}.{S}==", NOT_BASE64),
        ("padding of the header", f"{H}=.{P}.{S}", NOT_BASE64),
        ("the other alphabet", f"{H}.{P}.+/{S[2:]}", NOT_BASE64),
        ("white space", f"{H}. {P}.{S}", NOT_BASE64),
        ("a newline", f"{GOOD}\n", NOT_BASE64),
        ("a line fold", f"{H}.\r\n {P}.{S}", NOT_BASE64),
        ("a NUL", f"{H}.{P}\0.{S}", NOT_BASE64),
        ("percent-encoded", GOOD.replace(".", "%2E"), NOT_JWS),
        ("a letter beyond ASCII", f"{H}.{P}.é{S[1:]}", NOT_BASE64),
        ("a full-width digit", f"{H}.{P}.\uff11{S[1:]}", NOT_BASE64),
        ("a Cyrillic letter", f"{H}.{P}.\u0410{S[1:]}", NOT_BASE64),
        ("a right-to-left mark", f"{H}.{P}.\u202e{S}", NOT_BASE64),
        ("half a surrogate", f"{H}.{P}.\ud800{S}", NOT_BASE64),
        ("another dot", GOOD.replace(".", "\u3002"), NOT_JWS),
        ("a length that base64 cannot have", f"{H}.{P}.{S}AAA", NOT_BASE64),
        ("loose bits at the end", f"{H}.{P}.{S[:-1]}{chr(ord(S[-1]) + 1)}", NOT_BASE64),
        ("the signature cut", f"{H}.{P}.{b64(RAW[:-1])}", SIGNATURE),
        ("half of the signature", f"{H}.{P}.{b64(RAW[:32])}", SIGNATURE),
        ("more signature", f"{H}.{P}.{b64(RAW + b'x')}", SIGNATURE),
        ("the signature twice", f"{H}.{P}.{b64(RAW * 2)}", SIGNATURE),
        ("a signature of zeros", f"{H}.{P}.{b64(bytes(64))}", SIGNATURE),
        ("a signature of ones", f"{H}.{P}.{b64(bytes([255] * 64))}", SIGNATURE),
        ("a signature in DER", f"{H}.{P}.{b64(bytes.fromhex('3006020101020101'))}", SIGNATURE),
        ("r is 1 and s is 1", f"{H}.{P}.{b64((1).to_bytes(32, 'big') * 2)}", SIGNATURE),
        ("the payload cut", f"{H}.{b64(json.dumps(CLAIMS)[:-1])}.{S}", SIGNATURE),
        ("another payload", f"{H}.{b64(json.dumps(CLAIMS | {'sub': 'root'}))}.{S}", SIGNATURE),
        ("another header", f"{b64(json.dumps(HEAD | {'x': 1}))}.{P}.{S}", SIGNATURE),
        ("the signature of another token", f"{H}.{P}.{token(sub='bob').split('.')[2]}", SIGNATURE),
    ]
    rows += [
        (
            f"cut after {length} characters",
            GOOD[:length],
            NOT_JWS if GOOD[:length].count(".") < 2 else "",
        )
        for length in (
            1,
            len(H),
            len(H) + 1,
            len(H) + 10,
            len(H) + len(P) + 1,
            len(H) + len(P) + 3,
            len(GOOD) - 1,
        )
    ]
    return rows


def bad_headers() -> list[Row]:
    doubled = '{"alg":"ES256","kid":"ec","typ":"at+jwt","alg":"none"}'
    nested = b"[" * 5000
    return [
        (name, forge(header, CLAIMS), HEADER)
        for name, header in {
            "no JSON": b"header",
            "nothing": b" ",
            "null": b"null",
            "a list": b"[]",
            "a text": b'"ES256"',
            "a number": b"1",
            "cut": b'{"alg":"ES256"',
            "with more behind": b'{"alg":"ES256","kid":"ec"} {}',
            "a BOM": b'\xef\xbb\xbf{"alg":"ES256","kid":"ec"}',
            "UTF-16": json.dumps(HEAD).encode("utf-16"),
            "UTF-32": json.dumps(HEAD).encode("utf-32-le"),
            "no UTF-8": b'{"alg":"ES256","kid":"\xff"}',
            "no UTF-8 where nobody looks": b'{"alg":"ES256","kid":"ec","x":"\x80"}',
            "half a surrogate in kid": b'{"alg":"ES256","kid":"\\ud800"}',
            "alg twice": doubled,
            "alg twice, the good one last": '{"alg":"none","alg":"ES256","kid":"ec"}',
            "kid twice": '{"alg":"ES256","kid":"x","kid":"ec"}',
            "crit twice, the second spelt otherwise": (
                '{"alg":"ES256","kid":"ec","crit":[],"cr\\u0069t":[]}'
            ),
            "a quote in a name": '{"alg":"ES256","kid":"ec","a\\"b":1}',
            "a quote in a name, hiding a double": (
                '{"alg":"ES256","alg":"ES256","kid":"ec","a\\u0022\\u0022":1}'
            ),
            "nested": b'{"alg":"ES256","kid":"ec","x":' + nested,
            "nested and closed": b'{"alg":"ES256","kid":"ec","jwk":' + nested + b"]" * 5000 + b"}",
            "nested a little too deeply": (
                b'{"alg":"ES256","kid":"ec","x":' + b"[" * 200 + b"0" + b"]" * 200 + b"}"
            ),
            "typ a number": HEAD | {"typ": 1},
            "typ a list": HEAD | {"typ": ["at+jwt"]},
            "a comment": b'{"alg":"ES256",/* x */"kid":"ec"}',
            "single quotes": b"{'alg':'ES256','kid':'ec'}",
            "NaN": b'{"alg":"ES256","kid":"ec","x":NaN}',
        }.items()
    ]


def bad_payloads() -> list[Row]:
    encoded = json.dumps(CLAIMS)[:-1]
    rows = [
        (name, forge(HEAD, payload), CLAIMS_UNREADABLE)
        for name, payload in {
            "payload no JSON": b"claims",
            "payload empty object's half": b"{",
            "payload null": b"null",
            "payload a list": b"[]",
            "payload a list of claims": [CLAIMS],
            "payload a text": json.dumps(json.dumps(CLAIMS)),
            "payload UTF-16": json.dumps(CLAIMS).encode("utf-16"),
            "payload BOM": b"\xef\xbb\xbf" + json.dumps(CLAIMS).encode(),
            "payload no UTF-8": encoded.encode() + b',"x":"\xff"}',
            "payload cut": encoded,
            "payload with more behind": encoded + "}{}",
            "payload nested": encoded + ',"x":' + "[" * 5000 + "]" * 5000 + "}",
            "payload nested a little too deeply": (
                encoded + ',"x":' + "[" * 200 + "0" + "]" * 200 + "}"
            ),
            "payload nested, not closed": encoded + ',"x":' + '{"a":' * 1500,
            "payload NaN": encoded + ',"x":NaN}',
            "payload Infinity": encoded + ',"x":Infinity}',
            "payload too large a number": encoded + ',"x":1e999}',
            "payload half a surrogate": encoded + ',"x":"\\ud800"}',
            "a quote in a claim's name": encoded + ',"a\\"":1}',
        }.items()
    ]
    rows += [
        (f"{name} twice", forge(HEAD, f"{encoded},{json.dumps(name)}:{json.dumps(value)}}}"),
            CLAIMS_UNREADABLE)
        for name, value in {
            "iss": ISSUER, "aud": RESOURCE, "sub": "root", "exp": NOW + 9999, "scope": "admin",
            "client_id": "x", "jti": "t1",
        }.items()
    ]  # fmt: skip
    rows += [
        (
            "sub twice, spelt otherwise",
            forge(HEAD, encoded + ',"s\\u0075b":"root"}'),
            CLAIMS_UNREADABLE,
        ),
        ("jkt twice", forge(HEAD, encoded + ',"cnf":{"jkt":"a","jkt":"b"}}'), CLAIMS_UNREADABLE),
    ]
    return rows


def several(*values: Any) -> tuple[Any, ...]:
    return values


def wrong_claims() -> list[Row]:
    rows = [(f"without {name}", token(without=name), words) for name, words in (
        ("iss", "another issuer"), ("aud", "for whom"), ("exp", "when it expires"),
    )]  # fmt: skip
    no_name = {name: value for name, value in CLAIMS.items() if name not in ("sub", "client_id")}
    rows.append(("without sub and client_id", forge(HEAD, no_name), "whose it is"))
    rows.append(("without any claim", forge(HEAD, {}), "another issuer"))
    rows += [
        (f"iss {json.dumps(iss)}", token(iss=iss), "another issuer")
        for iss in several(
            "https://evil.example", f"{ISSUER}/", ISSUER.upper(), "http://as.example.com", "https://as.example.com:443",
            "https://as.example.com.evil.example", f"{ISSUER}/tenant", f" {ISSUER}", f"{ISSUER}\0",
            "", None, 1, [ISSUER], {},
            "https://as.example.com#sub:alice",
        )
    ]  # fmt: skip
    rows += [
        (f"aud {json.dumps(aud)}", token(aud=aud), words)
        for aud, words in (
            ("https://other.example.com/mcp", "another audience"),
            (f"{RESOURCE}/", "another audience"),
            ("https://mcp.example.com", "another audience"), (RESOURCE.upper(), "another audience"),
            (f"{RESOURCE}?x=1", "another audience"), (f"{RESOURCE}#x", "another audience"),
            ("app", "another audience"),
            ("", "another audience"), ("*", "another audience"), ([], "another audience"),
            ([""], "another audience"),
            (["https://other.example.com"], "another audience"),
            (f"x {RESOURCE}", "another audience"),
            ("http://mcp.example.com/mcp", "another audience"),
            (f"{RESOURCE}\n", "another audience"),
            (None, "for whom"), (1, "for whom"), (True, "for whom"), ({RESOURCE: 1}, "for whom"),
            ([RESOURCE, 1], "for whom"),
            ([[RESOURCE]], "for whom"), ([{"aud": RESOURCE}], "for whom"),
            ([RESOURCE, None], "for whom"),
        )
    ]  # fmt: skip
    unreadable: tuple[Any, ...] = (
        "",
        str(NOW + 600),
        True,
        [NOW + 600],
        {},
        -1,
        1e300,
        10**40,
        2**53,
    )
    rows += [
        (f"{name} {json.dumps(value)[:30]}", token(**{name: value}), f"cannot be read ({name})")
        for name in ("exp", "nbf", "iat")
        for value in unreadable
    ]
    rows += [
        ("exp null", token(exp=None), "when it expires"),
        ("expired just now", token(exp=NOW - 60), "has expired"),
        ("expired long ago", token(exp=0), "has expired"),
        ("expired, a fraction", token(exp=NOW - 60.5), "has expired"),
        ("not valid yet", token(nbf=NOW + 61), "not valid yet"),
        ("valid in a year", token(nbf=NOW + 31_536_000), "not valid yet"),
        ("issued in the future", token(iat=NOW + 61), "issued in the future"),
    ]
    rows += [
        (f"{name} {json.dumps(value)}", token(**{name: value}), f"cannot be read ({name})")
        for name in ("sub", "client_id")
        for value in several(
            "", 1, True, ["alice"], {"a": 1}, "alice\n", "a\0", "\x1b[31m", "a\u202eb"
        )
    ]
    rows += [
        (f"scope {json.dumps(scope)}", token(scope=scope), "scopes")
        for scope in (1, True, {"a": 1}, [1], ["a", None], [["a"]])
    ]
    rows += [
        (f"cnf {json.dumps(cnf)}", token(cnf=cnf), "bound to a key")
        for cnf in several(
            "", "x", 1, [], {}, {"jkt": ""}, {"jkt": 1}, {"jkt": None}, {"jkt": ["a"]},
            {"x5t#S256": "a"}, {"kid": "a"},
            {"jkt": "a", "x5t#S256": "b"}, {"jwk": {}}, {"JKT": "a"},
        )
    ]  # fmt: skip
    return rows


def of_another_kind() -> list[Row]:
    rows = [
        (f"typ {typ!r}", token(header={"typ": typ}), KIND)
        for typ in (
            "dpop+jwt", "DPOP+JWT", "application/dpop+jwt", "logout+jwt", "secevent+jwt",
            "id_token+jwt", "rt+jwt", "JWS", "JOSE",
            "oauth-id-jag+jwt", "client-authentication+jwt", "token-introspection+jwt", "at+jwt ",
            "at+JWS", "application/",
            "application/application/jwt",
        )
    ]  # fmt: skip
    rows += [
        (f"an ID token with {name}, typ {typ}", token(header={"typ": typ}, **{name: "x"}), KIND)
        for name in ("nonce", "at_hash", "c_hash", "s_hash", "events")
        for typ in ("JWT", None)
    ]
    rows += [
        ("a refresh token of Keycloak", token(header={"typ": "JWT"}, typ="Refresh"), KIND),
        ("an ID token of Keycloak", token(header={"typ": "JWT"}, typ="ID"), KIND),
        ("an offline token of Keycloak", token(header={"typ": "JWT"}, typ="Offline"), KIND),
        ("an ID token of Cognito", token(header={"typ": None}, token_use="id"), KIND),
        (
            "an ID token, for the client",
            token(header={"typ": "JWT"}, aud="app"),
            "another audience",
        ),
    ]
    return rows


def weak_keys() -> list[Row]:
    """Return valid tokens signed by keys that resemble one of the set."""
    twin = ECKey.derive_key(b"twin" * 8, "P-256", {"kid": "ec"})
    return [
        ("a key that has the same name", forge(HEAD, CLAIMS, twin), SIGNATURE),
        (
            "a key of the set, but it is of another curve",
            forge(HEAD | {"kid": "ec384"}, CLAIMS, EC384, "ES384"),
            UNKNOWN,
        ),
    ]


BAD_TOKENS: list[Row] = [
    *no_algorithm(),
    *confused_keys(),
    *injected_keys(),
    *injected_names(),
    *extensions(),
    *encrypted(),
    *misshapen(),
    *bad_headers(),
    *bad_payloads(),
    *wrong_claims(),
    *of_another_kind(),
    *weak_keys(),
]
