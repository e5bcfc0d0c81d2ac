"""Walks the client of the Python SDK through the steps that ../run lists: walk.py URL MODE"""

import logging
import sys
import time

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import ToolListChangedNotification

from steps import expect, step

MODERN = "2026-07-28"
TOOLS = ["echo", "count", "poll", "break", "sleep", "cancelled", "finished", "change"]

# Time enough for a call to reach its handler.
UNDER_WAY = 0.5

# Time enough for what must come.
PATIENCE = 3


def server(url):
    """A URL, or the server that is to be started: `stdio:` and its command."""
    if not url.startswith("stdio:"):
        return url
    command, *arguments = url.removeprefix("stdio:").split(" ")
    return StdioServerParameters(command=command, args=arguments)


def connect(url, mode, log, heard):
    async def on_log(message):
        log.append(message)

    async def on_message(message):
        if isinstance(message, Exception):
            raise message
        heard.append(message)

    # Without the level a modern server sends no log; legacy servers never hear of it.
    return Client(server(url), mode=mode, logging_callback=on_log, log_level="info", message_handler=on_message)


async def call(client, name, arguments, **options):
    result = await client.call_tool(name, arguments, **options)
    return result.content[0].text


async def list_tools(client):
    tools = (await client.list_tools()).tools
    expect("the tools", [tool.name for tool in tools], TOOLS)


async def echo(client, text):
    expect("the echo", await call(client, "echo", {"text": text}), text)


async def count(client, log):
    heard = []

    async def on_progress(progress, total, message):
        heard.append(progress)

    answer = await call(client, "count", {"to": 5, "interval_ms": 20}, progress_callback=on_progress)
    expect("the answer", answer, "counted to 5")
    expect("the progress", heard, [1, 2, 3, 4, 5])
    expect("the log", len(log), 5)


async def resume(client):
    """A call whose connection the server lets go again and again, and one whose connection breaks."""
    for tool, text in [("poll", "polled to 4"), ("break", "broke off before 4")]:
        heard = []

        async def on_progress(progress, total, message):
            heard.append(progress)

        answer = await call(client, tool, {"to": 4, "interval_ms": 200}, progress_callback=on_progress)
        expect("the answer", answer, text)
        expect("the progress", heard, [1, 2, 3, 4])


async def cancel(client):
    before = await cancelled(client)
    with anyio.move_on_after(UNDER_WAY) as scope:
        await call(client, "sleep", {"ms": 60_000})
    expect("given up", scope.cancelled_caught, True)
    await stopped(client, before)


async def changes(client, heard):
    """Hears of a change that a tool publishes: on a subscription, or on the stream that was opened with the session."""
    if client.protocol_version == MODERN:
        async with client.listen(tools_list_changed=True) as subscription:
            expect("what is granted", subscription.honored.tools_list_changed, True)
            await call(client, "change", {})
            with anyio.fail_after(PATIENCE):
                event = await anext(subscription)
        expect("what is heard", type(event).__name__, "ToolsListChanged")
        return
    await call(client, "change", {})
    deadline = time.monotonic() + PATIENCE
    while not any(isinstance(message, ToolListChangedNotification) for message in heard):
        if time.monotonic() > deadline:
            raise AssertionError(f"nothing was heard but {heard!r}")
        await anyio.sleep(0.01)


async def second(client, other):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(echo, client, "one")
        tasks.start_soon(echo, other, "another")


async def sleep_for_ever(client):
    try:
        await call(client, "sleep", {"ms": 60_000})
    except Exception:
        return
    raise AssertionError("the call was answered")


async def cancelled(client):
    return int(await call(client, "cancelled", {}))


async def stopped(client, before):
    deadline = time.monotonic() + PATIENCE
    while await cancelled(client) == before:
        if time.monotonic() > deadline:
            raise AssertionError("the handler is still running")
        await anyio.sleep(0.05)


async def walk(url, mode):
    async def version(client):
        return client.protocol_version

    log, heard = [], []
    client = connect(url, mode, log, heard)
    await client.__aenter__()
    await step("connect", version(client))
    await step("list", list_tools(client))
    await step("echo", echo(client, 'Grüße, "world"\n'))
    await step("count", count(client, log))
    if client.protocol_version == MODERN:
        print("resume skipped that revision has no way back", flush=True)
    else:
        await step("resume", resume(client))
    await step("cancel", cancel(client))
    await step("changes", changes(client, heard))
    # The second connection closes in the middle of a call.
    async with anyio.create_task_group() as tasks:
        async with connect(url, mode, [], []) as other:
            await step("second", second(client, other))
            before = await cancelled(client)
            tasks.start_soon(sleep_for_ever, other)
            await anyio.sleep(UNDER_WAY)
    if url.startswith("stdio:"):
        # The other server is a process of its own, and tells in its report what became of the call.
        print("hang-up ok", flush=True)
    else:
        await step("hang-up", stopped(client, before))
    await step("close", client.__aexit__(None, None, None))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    anyio.run(walk, *sys.argv[1:])
