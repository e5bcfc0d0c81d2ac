"""What the walk and the tour share."""


def expect(what, found, expected):
    if found != expected:
        raise AssertionError(f"{what}: {found!r}")


async def step(name, work):
    """Prints how a step went."""
    try:
        print(name, "ok", await work or "", flush=True)
    except Exception as error:
        print(name, "failed", repr(error).replace("\n", " "), flush=True)
