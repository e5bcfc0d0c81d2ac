"""An authorization server for tests: whoever asks is let in at once, and gets what is asked for.

    issuer.py KEY

Prints its URL. It speaks what clients of MCP need: metadata (RFC 8414), registration (RFC 7591) and client identifiers
that are URLs, whose documents it does not read; codes with PKCE (S256), refresh tokens, `iss` in its answers (RFC 9207).
It is strict where the protocol is: without `resource`, or with anything that does not fit, there is no token. The tokens
are JWTs, signed with the key by HMAC (HS256).

GET /expired?resource=… gives a token that was good once; GET /log says what clients have done, in order.
"""

import base64
import hashlib
import hmac
import http.server
import json
import secrets
import sys
import time
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

SECONDS = 3600


class Refused(Exception):
    pass


def expect(holds, error):
    if not holds:
        raise Refused(error)


def unpadded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    def __init__(self, key):
        self.key, self.url = key.encode(), None
        self.clients, self.codes, self.refreshes, self.log = {}, {}, {}, []

    def sign(self, resource, scope, seconds):
        claims = {
            "iss": self.url,
            "sub": "ada",
            "aud": resource,
            "scope": scope,
            "exp": int(time.time()) + seconds,
            "jti": secrets.token_hex(8),
        }
        parts = [unpadded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
        signed = ".".join(parts)
        return f"{signed}.{unpadded(hmac.digest(self.key, signed.encode(), 'sha256'))}"

    def metadata(self):
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "client_id_metadata_document_supported": True,
            "authorization_response_iss_parameter_supported": True,
        }

    def register(self, body):
        asked = json.loads(body)
        client = {**asked, "client_id": secrets.token_hex(8), "token_endpoint_auth_method": "none"}
        self.clients[client["client_id"]] = asked["redirect_uris"]
        return client

    def authorize(self, query):
        """Where to send the user, with a code."""
        client, redirect = query.get("client_id", ""), query.get("redirect_uri", "")
        known = self.clients.get(client)
        expect(redirect in known if known else client.startswith("https://"), "invalid_client")
        expect(query.get("response_type") == "code", "unsupported_response_type")
        expect(query.get("code_challenge") and query.get("code_challenge_method") == "S256", "invalid_request")
        expect(query.get("resource"), "invalid_target")
        code = secrets.token_hex(8)
        self.codes[code] = query
        answer = {"code": code, "iss": self.url, **({"state": query["state"]} if "state" in query else {})}
        return f"{redirect}?{urlencode(answer)}"

    def token(self, form):
        expect(form.get("resource"), "invalid_target")
        if form["grant_type"] == "refresh_token":
            grant = self.refreshes.pop(form.get("refresh_token"), None)
            expect(grant, "invalid_grant")
            scope = form.get("scope", grant["scope"])
            expect(set(scope.split()) <= set(grant["scope"].split()), "invalid_scope")
        else:
            expect(form["grant_type"] == "authorization_code", "unsupported_grant_type")
            grant = self.codes.pop(form.get("code"), None)
            expect(grant and grant["redirect_uri"] == form.get("redirect_uri"), "invalid_grant")
            challenge = unpadded(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
            expect(challenge == grant["code_challenge"], "invalid_grant")
            scope = grant.get("scope", "")
        expect(grant["client_id"] == form.get("client_id"), "invalid_client")
        expect(grant["resource"] == form["resource"], "invalid_target")
        refresh = secrets.token_hex(8)
        self.refreshes[refresh] = {**grant, "scope": scope}
        return {
            "access_token": self.sign(form["resource"], scope, SECONDS),
            "token_type": "Bearer",
            "expires_in": SECONDS,
            "refresh_token": refresh,
            "scope": scope,
        }


class Handler(http.server.BaseHTTPRequestHandler):
    issuer: Issuer

    def do_GET(self):
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        match url.path:
            case "/.well-known/oauth-authorization-server":
                self.answer("metadata", self.issuer.metadata)
            case "/authorize":
                scope = " ".join(sorted(query.get("scope", "").split()))
                self.answer(f"authorize {scope}", lambda: self.issuer.authorize(query), 302)
            case "/expired":
                self.answer(None, lambda: {"access_token": self.issuer.sign(query["resource"], "files:read", -60)})
            case "/log":
                self.answer(None, lambda: self.issuer.log)
            case _:
                self.send_error(404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match self.path:
            case "/register":
                self.answer("register", lambda: self.issuer.register(body), 201)
            case "/token":
                form = dict(parse_qsl(body.decode()))
                self.answer(f"token {form.get('grant_type')}", lambda: self.issuer.token(form))
            case _:
                self.send_error(404)

    def answer(self, what, make, status=200):
        try:
            made = make()
        except Refused as refused:
            status, made, what = 400, {"error": str(refused)}, f"{what} refused: {refused}"
        if what:
            self.issuer.log.append(what)
        self.send_response(status)
        if isinstance(made, str):
            self.send_header("Location", made)
            made = ""
        else:
            self.send_header("Content-Type", "application/json")
            made = json.dumps(made)
        self.send_header("Content-Length", str(len(made)))
        self.end_headers()
        self.wfile.write(made.encode())

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    Handler.issuer = Issuer(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.issuer.url = f"http://127.0.0.1:{server.server_port}"
    print(Handler.issuer.url, flush=True)
    server.serve_forever()
