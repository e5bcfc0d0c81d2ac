"""Takes the client of the Python SDK through the steps that ../auth lists: auth.py URL MODE ISSUER"""

import sys
from contextlib import AsyncExitStack
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from steps import expect, step

MODERN = "2026-07-28"
REDIRECT = "http://localhost:1/callback"


class Storage:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class User:
    """Agrees at once."""

    async def redirect(self, url):
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(url)
        self.answer = {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}

    async def callback(self):
        return AuthorizationCodeResult(**{name: self.answer.get(name) for name in ("code", "state", "iss")})


async def call(client, name):
    return (await client.call_tool(name, {})).content[0].text


async def look(client):
    expect("the answer", (await call(client, "look")).endswith('"ada"] sees a file'), True)


async def step_up(client):
    expect("the answer", (await call(client, "delete")).endswith('"ada"] has deleted it'), True)


async def refresh(client, provider, storage):
    """The token has expired since it was used last. The client looks at its clock before it asks."""
    old = storage.tokens.access_token
    provider.context.token_expiry_time = 1
    await look(client)
    expect("another token", storage.tokens.access_token != old, True)


async def walk(url, mode, issuer):
    user, storage = User(), Storage()
    metadata = OAuthClientMetadata(
        client_name="walk",
        redirect_uris=[REDIRECT],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",
    )
    # Where the server takes URLs for client identifiers there is nothing to register.
    metadata_url = "https://client.example.com/metadata.json" if mode == MODERN else None
    provider = OAuthClientProvider(
        url, metadata, storage, user.redirect, user.callback, client_metadata_url=metadata_url
    )
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx2.AsyncClient(auth=provider, timeout=30))
        client = Client(streamable_http_client(url, http_client=http), mode=mode)

        async def authorize():
            await stack.enter_async_context(client)
            await client.list_tools()

        await step("authorize", authorize())
        await step("look", look(client))
        await step("step-up", step_up(client))
        await step("refresh", refresh(client, provider, storage))
        await step("close", stack.aclose())


if __name__ == "__main__":
    anyio.run(walk, *sys.argv[1:])
