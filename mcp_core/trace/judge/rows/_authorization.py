"""Rows for authorization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # AG, Scope, roles, transport
    *rows(
        {"2024-11-05": "basic", "2025-03-26": "basic/authorization"},
        ("AG-1", "schema", "2024-11-05", "2025-03-26", "both",
         "No authorization in the core; custom schemes are allowed."),
        ("AG-2", "MAY", "2025-03-26", None, "both",
         "Authorization is optional; HTTP transports SHOULD follow it; stdio SHOULD NOT "
         "(credentials from the environment); other transports MUST follow their own best "
         "practice."),
        ("AG-3", "schema", "2025-03-26", "2025-06-18", "server",
         "The MCP server is itself the authorization server (or fronts a third party)."),
        ("AG-4", "schema", "2025-06-18", None, "server",
         "The MCP server is an OAuth 2.1 resource server; the authorization server (AS) is "
         "separate or co-hosted."),
        ("AG-5", "MUST", "2025-03-26", None, "authorization server",
         "OAuth 2.1 for public and confidential clients."),
        ("AG-6", "MUST", "2025-03-26", None, "both",
         "OAuth 2.1 security best practices; all AS endpoints over HTTPS; redirect URIs are "
         "localhost or HTTPS."),
        ("AG-7", "MUST", "2025-03-26", None, "both",
         "Tokens stored securely."),
        ("AG-8", "schema", "2026-07-28", None, "both",
         "Authorization extensions (client credentials, enterprise-managed, others) are "
         "optional and additive; ids in `extensions`."),
    ),
    # AR, Resource server duties
    *rows(
        {"2024-11-05": "basic", "2025-03-26": "basic/authorization"},
        ("AR-1", "MUST", "2025-03-26", None, "resource server",
         "No or bad credentials where needed → 401; insufficient scope/permission → 403; "
         "malformed authorization request → 400. Expired token → 401."),
        ("AR-2", "MUST", "2025-06-18", None, "resource server",
         "Publish Protected Resource Metadata (RFC 9728) with non-empty "
         "`authorization_servers`; `resource` is the canonical server URI."),
        ("AR-3", "MUST", "2025-06-18", "2025-11-25", "resource server",
         "401 carries `WWW-Authenticate` with `resource_metadata` URL."),
        ("AR-4", "MUST", "2025-11-25", None, "resource server",
         "Either `resource_metadata` in `WWW-Authenticate` of 401, or the document at a "
         "well-known URI (endpoint path form or root). Doing both is best."),
        ("AR-5", "SHOULD", "2025-11-25", None, "resource server",
         "`scope` in the challenge = what the operation needs; consistent strategy; need not be "
         "within `scopes_supported`."),
        ("AR-6", "SHOULD", "2025-11-25", None, "resource server",
         "Insufficient scope at run time: 403 with `WWW-Authenticate: Bearer "
         'error="insufficient_scope", scope="…", resource_metadata="…"` (+ '
         "`error_description?`)."),
        ("AR-7", "SHOULD", "2026-07-28", None, "resource server",
         "All scopes of the operation in one challenge, not piecemeal; earlier granted scopes "
         "need not be repeated. (2025-11-25: recommended to include existing relevant scopes.)"),
        ("AR-8", "MUST", "2026-07-28", None, "resource server",
         "Account for scope hierarchies when judging a token."),
        ("AR-9", "SHOULD NOT", "2026-07-28", None, "resource server",
         "`offline_access` neither in the challenge nor in PRM `scopes_supported`."),
        ("AR-10", "MUST", "2025-03-26", None, "resource server",
         "Validate tokens as OAuth 2.1 §5.2, errors as §5.3 (`invalid_token`, …), before doing "
         "any work."),
        ("AR-11", "MUST", "2025-06-18", None, "resource server",
         "Audience check: accept only tokens issued for this server (RFC 8707; `aud` or "
         "introspection); reject others."),
        ("AR-12", "MUST NOT", "2025-06-18", None, "resource server",
         "No token passthrough: the client's token is never sent upstream; upstream calls use "
         "an own token."),
        ("AR-13", "MUST", "2025-03-26", None, "resource server",
         "The token is checked on each HTTP request, also inside a session; sessions are not "
         "authentication."),
        ("AR-14", "MUST NOT", "2025-03-26", None, "resource server",
         "No tokens accepted from the URI query."),
        ("AR-15", "MUST", "2025-06-18", None, "resource server",
         "Proxy servers with a static upstream client id obtain user consent per dynamically "
         "registered client before forwarding."),
        ("AR-16", "reading", "2025-03-26", None, "resource server",
         "Metadata endpoints and (legacy) OAuth endpoints are reachable without a token; CORS "
         "and OPTIONS as needed by browsers."),
        ("AR-17", "reading", "2024-11-05", None, "resource server",
         "Bind sessions (up to 2025-11-25), tasks, `requestState`, handles to the principal of "
         "the token."),
    ),
    # AC, Client: discovery of the AS
    *rows(
        {
            "2025-03-26": "basic/authorization",
            "2026-07-28": "basic/authorization/authorization-server-discovery",
        },
        ("AC-1", "MUST", "2025-03-26", "2025-06-18", "client",
         "Authorization base URL = MCP URL without its path; metadata at "
         "`<base>/.well-known/oauth-authorization-server`."),
        ("AC-2", "MUST", "2025-03-26", "2025-06-18", "client",
         "Try metadata first; if missing use `/authorize`, `/token`, `/register` on the base "
         "URL."),
        ("AC-3", "SHOULD", "2025-03-26", "2025-06-18", "client",
         "`MCP-Protocol-Version` header on metadata requests."),
        ("AC-4", "MUST", "2025-06-18", None, "client",
         "PRM is used to find the AS; parse `WWW-Authenticate`, react to 401."),
        ("AC-5", "MUST", "2025-11-25", None, "client",
         "Order: (1) `resource_metadata` URL from the challenge; (2) "
         "`/.well-known/oauth-protected-resource<path>`; (3) "
         "`/.well-known/oauth-protected-resource`. If the endpoint has no path, (2) is skipped. "
         "Then abort or use preset values."),
        ("AC-6", "schema", "2025-06-18", "2025-11-25", "client",
         "Only (1) is described; a client of 2025-06-18 SHOULD use the fallback of 2025-11-25 too"
         " (reading)."),
        ("AC-7", "MUST", "2025-06-18", None, "client",
         "RFC 9728: the `resource` in the document must match the resource/URL it was asked "
         "for; otherwise do not use it (conformance: resource mismatch is refused)."),
        ("AC-8", "MAY", "2025-06-18", None, "client",
         "With several `authorization_servers` the client chooses."),
        ("AC-9", "MUST", "2025-06-18", "2025-11-25", "client",
         "RFC 8414 metadata of the AS."),
        ("AC-10", "MUST", "2025-11-25", None, "client",
         "Issuer with a path `/t`: `https://h/.well-known/oauth-authorization-server/t`, then "
         "`https://h/.well-known/openid-configuration/t`, then "
         "`https://h/t/.well-known/openid-configuration`."),
        ("AC-11", "MUST", "2025-11-25", None, "client",
         "Issuer without a path: `/.well-known/oauth-authorization-server`, then "
         "`/.well-known/openid-configuration`."),
        ("AC-12", "MUST", "2026-07-28", None, "client",
         "`issuer` in the document is identical to the issuer used to build the URL, else the "
         "document is not used. (RFC 8414 §3.3 demands the same in 2025-06-18 and 2025-11-25.)"),
        ("AC-13", "MUST", "2025-06-18", None, "client",
         "Separate registration and tokens per AS (explicit since 2026-07-28)."),
        ("AC-14", "reading", "2025-11-25", None, "client",
         "Go on to the next well-known URL on 4xx (404/405…); a 5xx or network error is a "
         "failure, not a miss. Cross-check with the AS that a co-hosted server of 2025-03-26 has "
         "no PRM: after PRM misses an old server may be tried by the rules of 2025-03-26 "
         '(conformance has a "March spec" back-compat scenario).'),
    ),
    # AQ, Client: registration
    *rows(
        {
            "2025-03-26": "basic/authorization",
            "2026-07-28": "basic/authorization/client-registration",
        },
        ("AQ-1", "SHOULD", "2025-03-26", "2025-11-25", "both",
         "Dynamic Client Registration (RFC 7591) supported; otherwise preset client id or UI "
         "entry."),
        ("AQ-2", "SHOULD", "2025-11-25", None, "client",
         "Order: pre-registered → CIMD if `client_id_metadata_document_supported` → DCR if "
         "`registration_endpoint` → ask the user."),
        ("AQ-3", "MAY", "2025-11-25", None, "client",
         "DCR optional; deprecated in 2026-07-28."),
        ("AQ-4", "MUST", "2025-11-25", None, "client",
         "CIMD: document at an HTTPS URL with a path; has `client_id` (exactly that URL), "
         "`client_name`, `redirect_uris`; optional `private_key_jwt` with JWKS."),
        ("AQ-5", "MUST", "2025-11-25", None, "authorization server",
         "CIMD: fetched `client_id` = URL; redirect URI in the list; valid JSON; SHOULD cache "
         "per HTTP headers; SHOULD guard against SSRF; MUST show the redirect host; SHOULD warn "
         "for localhost-only."),
        ("AQ-6", "MUST", "2026-07-28", None, "client",
         "DCR sends `application_type` (`native` for desktop/CLI/localhost, `web` otherwise); "
         "be ready for a refusal of redirect URIs, MAY retry adjusted."),
        ("AQ-7", "MUST", "2026-07-28", None, "client",
         "Credentials (pre-registered or DCR) are keyed by the AS `issuer`; AS changed → not "
         "reused, re-register; for pre-registered surface an error. CIMD ids are portable."),
        ("AQ-8", "SHOULD", "2026-07-28", None, "client",
         "`refresh_token` in `grant_types` if wanted."),
        ("AQ-9", "MUST", "2025-03-26", None, "client",
         "Redirect URIs are registered; the AS compares exactly."),
        ("AQ-10", "reading", "2025-03-26", None, "client",
         "Token endpoint auth method: what registration returned, else from "
         "`token_endpoint_auth_methods_supported` (default `client_secret_basic`; public client "
         "`none`)."),
    ),
    # AF, Client: authorization code flow
    *rows(
        {"2025-03-26": "basic/authorization"},
        ("AF-1", "MUST", "2025-03-26", None, "client",
         "PKCE always."),
        ("AF-2", "MUST", "2025-11-25", None, "client",
         "`S256` when able; `code_challenge_methods_supported` absent in the AS metadata (RFC "
         "8414 or OIDC) → refuse to go on."),
        ("AF-3", "MUST", "2025-06-18", None, "client",
         "`resource` (RFC 8707) in the authorization request and each token request (refresh as "
         "well, by reading), even if the AS does not advertise it."),
        ("AF-4", "MUST", "2025-06-18", None, "client",
         "`resource` = canonical server URI: absolute, no fragment, as specific as possible; "
         "lower-case scheme/host, no trailing slash unless significant. Accept upper case on "
         "input. If PRM gives `resource`, use that (RFC 9728), provided it matches."),
        ("AF-5", "SHOULD", "2025-06-18", None, "client",
         "`state` sent and verified; drop mismatches. (MUST in the best-practice page for "
         "proxies.)"),
        ("AF-6", "SHOULD", "2025-11-25", None, "client",
         "Scope: from the 401 challenge; else all `scopes_supported` of PRM; else no `scope`."),
        ("AF-7", "MUST NOT", "2025-11-25", None, "client",
         "No assumed relation of challenge scopes to `scopes_supported`; challenge is "
         "authoritative for the operation."),
        ("AF-8", "MUST", "2026-07-28", None, "client",
         "Before redirecting, record the validated `issuer` with the PKCE verifier and state."),
        ("AF-9", "MUST", "2026-07-28", None, "client",
         "`iss` check before redeeming the code: supported flag true → must be present and "
         "equal; flag absent/false → equal if present, proceed if absent."),
        ("AF-10", "MUST NOT", "2026-07-28", None, "client",
         "No normalisation (case, port, slash, percent) in the comparison; plain string "
         "equality after form decoding."),
        ("AF-11", "MUST NOT", "2026-07-28", None, "client",
         "On `iss` mismatch do not act on or show `error`, `error_description`, `error_uri` "
         "either."),
        ("AF-12", "SHOULD", "2026-07-28", None, "authorization server",
         "Sends `iss` also in errors; if so MUST set "
         "`authorization_response_iss_parameter_supported`."),
        ("AF-13", "SHOULD", "2025-03-26", "2025-06-18", "server",
         "Grant types by audience: authorization code (user), client credentials (machine)."),
        ("AF-14", "MUST", "2025-03-26", None, "authorization server",
         "Exact redirect URI validation; refresh token rotation for public clients (since "
         "2025-06-18 MUST); short-lived tokens SHOULD."),
    ),
    # AT, Client: using and renewing tokens
    *rows(
        {"2025-03-26": "basic/authorization"},
        ("AT-1", "MUST", "2025-03-26", None, "client",
         "`ClientAuthorization: Bearer <token>` on every HTTP request to the server (POST, GET, "
         "DELETE), never in the query."),
        ("AT-2", "MUST NOT", "2025-06-18", None, "client",
         "Only tokens issued by this server's AS are sent to it."),
        ("AT-3", "MUST", "2026-07-28", None, "client",
         "Refresh tokens kept confidential; not assumed to exist; `offline_access` MAY be asked "
         "if in AS `scopes_supported`."),
        ("AT-4", "reading", "2025-03-26", None, "client",
         "401 with a token: refresh or re-authorize once, then retry; do not loop. Same origin "
         "only: drop the header on cross-origin redirects."),
        ("AT-5", "SHOULD", "2025-11-25", None, "client",
         "Step-up on `insufficient_scope`: user-facing clients SHOULD, client-credentials "
         "clients MAY."),
        ("AT-6", "SHOULD", "2026-07-28", None, "client",
         "New request asks for the union of previously requested and challenged scopes. "
         "(2025-11-25: scopes by the selection strategy.)"),
        ("AT-7", "SHOULD", "2025-11-25", None, "client",
         "Retry only a few times; remember attempts per resource and operation."),
        ("AT-8", "reading", "2026-07-28", None, "client",
         "MRTR, listen and task polling requests need the header as well; on token change "
         "private caches are separate."),
    ),
    # AU, URL handling, SSRF, browser opening (guide pages, not the specification proper)
    *rows(
        {"2025-03-26": "/docs/*/tutorials/security/security_best_practices"},
        ("AU-1", "MUST", "2025-06-18", None, "client",
         "Server-hosted clients consider SSRF for all OAuth URLs (PRM, AS metadata, endpoints, "
         "redirects)."),
        ("AU-2", "SHOULD", "2025-06-18", None, "client",
         "HTTPS for OAuth URLs except loopback in development; explicit opt-out."),
        ("AU-3", "SHOULD", "2025-06-18", None, "client",
         "Block private, loopback, link-local (169.254/16 incl. metadata service), `fc00::/7`, "
         "`fe80::/10`; use a real parser (encoding tricks, IPv4-mapped); check redirects hop by "
         "hop; mind DNS rebinding between check and use (pin the address); egress proxy."),
        ("AU-4", "MUST", "2025-06-18", None, "client",
         "Authorization URLs: only `https`, `http` for loopback; reject `javascript:`, `data:`, "
         "`file:`, `vbscript:`; open without a shell."),
        ("AU-5", "MUST", "2025-06-18", None, "resource server",
         "Consent rules for proxy servers: per-client consent before upstream, exact redirect "
         "match, single-use short-lived `state` set only after consent, `__Host-` Secure "
         "HttpOnly SameSite cookies, no framing."),
        ("AU-6", "MUST", "2025-03-26", "2026-07-28", "resource server",
         "Sessions: secure non-deterministic ids, not used as authentication; SHOULD be bound "
         "to the user id."),
        ("AU-7", "MUST NOT", "2026-07-28", None, "resource server",
         "A state handle is no authentication; SHOULD be random and bound to the user."),
        ("AU-8", "MUST", "2025-06-18", None, "host",
         "One-click local servers: show the exact command, ask consent."),
    ),
    # AX, Authorization extensions (optional)
    *rows(
        {"2026-07-28": "/extensions/auth/overview"},
        ("AX-1", "schema", "2026-07-28", None, "client",
         "`io.modelcontextprotocol/oauth-client-credentials`: token by `client_credentials` "
         "(secret) or JWT assertion (RFC 7523; iss=sub=client id, aud, exp, iat); declared per "
         "request in `extensions`."),
        ("AX-2", "schema", "2026-07-28", None, "client",
         "`io.modelcontextprotocol/enterprise-managed-authorization`: SSO identity assertion → "
         "ID-JAG at the IdP (token exchange) → access token at the MCP AS (JWT bearer grant); "
         "no user redirect to the MCP AS."),
        ("AX-3", "schema", "2026-07-28", None, "both",
         "DPoP (SEP-1932) and workload identity (SEP-1933) exist as drafts in the conformance "
         "suite only."),
    ),
)
# fmt: on
