"""Sessions over a WebSocket: the first frame asks, bytes are typed and shown, text is JSON beside them."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from starlette.websockets import WebSocket, WebSocketDisconnect

from maitred.errors import Fault, Forbidden, InvalidJob, MaitredError, SessionDenied, Unauthorized
from maitred.http.access import KNOWN, address_of, must_be_allowed
from maitred.http.answer import problem_answer, problem_of
from maitred.http.auditing import change, made
from maitred.http.incoming import Name, TheDesk
from maitred.service.caller import Caller
from maitred.service.desk import Desk
from maitred.service.document import Document
from maitred.service.session import Session, TakenOver
from maitred.wire import encode_json
from maitred.wire.session import OpenFrame, ResumeFrame, parse_first, parse_resize

DESCRIPTION = """\
**Sessions** are not among the calls below, since they are no plain requests:
`WS /api/v1/queues/{queue}/interactive` is a WebSocket. The first frame is JSON,
`{"key"?, "submitter", "command", "files"?, "terminal"?: [columns, rows]}`, or
`{"session", "received"?, "terminal"?}` to take one up again within 30 s. The answer comes at once,
`{"status": "started", "id", "session", "at"}` or
`{"status": "denied", "code", "reason", "errors"?}`. Then binary frames are what is typed and what
the terminal shows. Text frames are `{"resize": [columns, rows]}` from the client; from the server
`{"status": "halting", "seconds", "code", "reason"}`, and at last `{"status": "ended", "code", "exit"}`.
A session ends with its key: when that is revoked, expires or is replaced, the client is told
`{"status": "denied", "code": "unauthorized", "reason"}`, and the connection is closed with 1008."""

# How long the first frame may take, in seconds.
PATIENCE = 10.0
# How often it is looked whether a client's key is still good, in seconds.
LOOK_EVERY = 1.0
# Why a connection is closed: a wrong frame or key; no session now; trouble of ours; another client has it.
WRONG, LATER, BROKEN, TAKEN_OVER = 1008, 1013, 1011, 4001

KEY_GONE = "the key by which the session was opened is no longer good"

router = APIRouter(dependencies=[KNOWN])


@router.websocket("/api/v1/queues/{queue}/interactive")
async def interactive(websocket: WebSocket, queue: Name, desk: TheDesk) -> None:
    """Open a session or take one up, and stay until it ends, the client drops, or another one has it."""
    try:
        if _known(websocket) or not await desk.door.guarded():
            await desk.settings(queue)
    except MaitredError as error:
        await websocket.send_denial_response(problem_answer(problem_of(error)))
        return
    await websocket.accept()
    try:
        await _serve(websocket, desk, queue)
    except WebSocketDisconnect:
        return


async def _serve(websocket: WebSocket, desk: Desk, queue: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            frame = parse_first(await _text(websocket))
        caller = _known(websocket) or await _admitted(websocket, desk, frame)
        if isinstance(frame, OpenFrame):
            session = await desk.sessions.open(queue, frame, caller)
        else:
            session = await desk.sessions.resume(queue, frame, caller)
        made(websocket, session.id)
        await desk.audit.note(change(websocket, caller, HTTPStatus.SWITCHING_PROTOCOLS))
    except TimeoutError:
        await websocket.close(WRONG, "no first frame came")
    except (InvalidJob, Unauthorized, Forbidden) as error:
        await _deny(websocket, error, WRONG)
    except MaitredError as error:
        await _deny(websocket, error, LATER)
    else:
        async with session.attended():
            parts = (_tell(websocket, session, frame), _hear(websocket, session), _guard(desk, caller))
            await _stay(websocket, session, *parts)


def _known(websocket: WebSocket) -> Caller | None:
    """Give who calls, if that was said in a header."""
    return getattr(websocket.state, "caller", None)


async def _admitted(websocket: WebSocket, desk: Desk, frame: OpenFrame | ResumeFrame) -> Caller:
    """Give who calls by the key in the first frame; `Unauthorized` or `Forbidden`."""
    caller = await desk.door.admit_key(frame.key, address_of(websocket))
    must_be_allowed(websocket, caller)
    return caller


async def _guard(desk: Desk, caller: Caller) -> None:
    """Watch over the client's key; raise `Unauthorized` once it is no longer good."""
    while await desk.door.still(caller):  # noqa: ASYNC110 - it may be revoked at another server, or expire
        await asyncio.sleep(LOOK_EVERY)
    raise Unauthorized(KEY_GONE)


async def _stay(websocket: WebSocket, session: Session, *parts: Coroutine[None, None, None]) -> None:
    """Let the client have the session until one of the parts ends."""
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await next(task for task in tasks if task.done())
    except Unauthorized as error:
        await _end(tasks)
        await session.end(KEY_GONE)
        await _deny(websocket, error, WRONG)
    except TakenOver:
        await websocket.close(TAKEN_OVER, "another client has taken the session up")
    except InvalidJob as error:
        # A frame that closes holds no more than 123 bytes of a reason.
        await websocket.close(WRONG, str(error).encode()[:120].decode(errors="ignore"))
    finally:
        await _end(tasks)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _tell(websocket: WebSocket, session: Session, frame: OpenFrame | ResumeFrame) -> None:
    """Send what the client is to know and to see, to the end."""
    started = {"status": "started", "id": session.id, "session": session.name}
    if isinstance(frame, OpenFrame):
        await _say(websocket, {**started, "at": 0})
        await session.claim(None)
    else:
        await session.claim((frame.terminal[0], frame.terminal[1]) if frame.terminal else None)
        past = await session.past(frame.received)
        await _say(websocket, {**started, "at": past.at})
        if past.cut:
            await _say(websocket, {"status": "cut", "bytes": past.cut})
        for piece in past.pieces:
            await websocket.send_bytes(piece)
    async with aclosing(session.told()) as told:
        async for word in told:
            if isinstance(word, bytes):
                await websocket.send_bytes(word)
            else:
                await _say(websocket, word)
    await websocket.close()


async def _hear(websocket: WebSocket, session: Session) -> None:
    """Pass on what the client does, until it is gone; `InvalidJob` if a text frame is not as it should be."""
    while (message := await websocket.receive())["type"] == "websocket.receive":
        if (data := message.get("bytes")) is not None:
            await session.type_in(data)
        else:
            await session.resize(parse_resize(message["text"]))


async def _text(websocket: WebSocket) -> str:
    message = await websocket.receive()
    if message["type"] != "websocket.receive":
        raise WebSocketDisconnect(message.get("code", 1000))
    text: str | None = message.get("text")
    if text is None:
        raise InvalidJob([Fault("", "must be text, and not bytes: JSON")])
    return text


async def _say(websocket: WebSocket, document: Document) -> None:
    await websocket.send_text(encode_json(document).decode())


async def _deny(websocket: WebSocket, error: MaitredError, code: int) -> None:
    """Tell why there is no session, and close."""
    why = error.why if isinstance(error, SessionDenied) else error.code
    denied: dict[str, Any] = {"status": "denied", "code": why, "reason": str(error)}
    if isinstance(error, InvalidJob):
        denied["errors"] = [fault._asdict() for fault in error.faults]
    await _say(websocket, denied)
    await websocket.close(code)
