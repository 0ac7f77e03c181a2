"""Labels words while they arrive, over the WebSocket of `tapir serve`.

    pip install websockets
    python stream.py "add step to me to the fifty clasicos playlist"
    python stream.py --server wss://example.org --token TOKEN "play some jazz"
"""

import argparse
import asyncio
import json

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException


async def ask(socket, message):
    """Sends a message and gives its answers: the final one, or a provisional one before it."""
    await socket.send(json.dumps(message))
    while True:
        answer = json.loads(await socket.recv())
        if "error" in answer:
            raise SystemExit(answer["error"])
        yield answer
        if not answer.get("provisional"):
            return


def show(answer, words):
    """A line for an answer: what was read last, is it final, which labels are new or different."""
    name = "the end" if "labels" in answer else words[answer["step"] - 1]
    kind = "provisional" if answer.get("provisional") else "final"
    edits = [
        f"{words[edit['position']]}: {edit['old']} -> {edit['label']}"
        if "old" in edit
        else edit["label"]
        for edit in answer["edits"]
    ]
    print(f"{name:<12}{kind:<13}{', '.join(edits) or '-'}", flush=True)


async def main(server, token, said):
    # The words as the model reads them: "What's" may be two, "..." none.
    words = []
    headers = {"Authorization": f"Bearer {token}"} if token else None
    async with connect(f"{server}/v1/stream", additional_headers=headers) as socket:
        for message in [*({"push": word} for word in said), {"finish": True}]:
            before = len(words)
            async for answer in ask(socket, message):
                if "push" in message:
                    words[before:] = answer.get("words", [message["push"]])
                if words:
                    show(answer, words)
        print()
        for span in answer["spans"]:
            print(f"{span['label']}: {' '.join(words[span['start']:span['end']])}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Labels words while they arrive.")
    server = "ws://127.0.0.1:8642"
    parser.add_argument("--server", default=server, help="where the server is [%(default)s]")
    parser.add_argument("--token", help="one of the server's tokens, if it has any")
    parser.add_argument("words", help="what is said, as one argument")
    args = parser.parse_args()
    try:
        asyncio.run(main(args.server, args.token, args.words.split()))
    except (OSError, WebSocketException) as error:
        raise SystemExit(f"{args.server}: {error}")
