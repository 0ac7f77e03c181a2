"""Labels words while they arrive, over NATS JetStream alone.

    nats-server -js &
    tapir worker --nats nats://localhost:4222 &
    pip install nats-py
    python nats_stream.py "add step to me to the fifty clasicos playlist"
"""

import argparse
import asyncio
import json
import uuid

import nats
import nats.errors
from nats.js.api import DeliverPolicy
from nats.js.errors import NotFoundError


class Session:
    """A session of a cell: messages in, answers out, each once and in order."""

    def __init__(self, broker, cell, name):
        self.broker, self.subject = broker, f"{cell}.in.{name}"
        self.answers_subject = f"{cell}.answers.{name}"
        self.id, self.sent = uuid.uuid4().hex, 0

    async def listen(self):
        # An ordered consumer reads what the stream has kept, and begins anew by itself where it
        # was when a node dies. The same answers come on CELL.out.NAME, for who may miss some.
        self.answers = await self.broker.subscribe(
            self.answers_subject, ordered_consumer=True, deliver_policy=DeliverPolicy.NEW
        )

    async def ask(self, message):
        """Sends a message and gives its answers: the last one, or a provisional one before it."""
        self.sent += 1
        # With an id, a message that is sent again because its acknowledgement was lost counts once.
        headers = {"Nats-Msg-Id": f"{self.id}.{self.sent}"}
        payload = json.dumps(message).encode()
        for attempt in range(10):
            try:
                kept = await self.broker.publish(self.subject, payload, headers=headers)
                break
            except (nats.errors.TimeoutError, nats.errors.NoRespondersError):
                await asyncio.sleep(0.1 * 2**attempt)
        else:
            raise SystemExit("the broker takes no messages")
        while True:
            answer = await self.answers.next_msg(timeout=60)
            if int(answer.headers["Tapir-Input"]) < kept.seq:
                continue
            response = json.loads(answer.data)
            if "error" in response:
                raise SystemExit(response["error"])
            yield response
            if answer.headers["Tapir-Answer"] == "last":
                return


async def main(server, cell, said):
    connection = await nats.connect(server)
    session = Session(connection.jetstream(), cell, f"python-{uuid.uuid4().hex[:12]}")
    await session.listen()
    words = []
    for message in [*({"push": word} for word in said), {"finish": True}]:
        before = len(words)
        async for answer in session.ask(message):
            if "push" in message:
                words[before:] = answer.get("words", [message["push"]])
            kind = "provisional" if answer.get("provisional") else "final"
            edits = [f"{words[edit['position']]}: {edit['label']}" for edit in answer["edits"]]
            print(f"{kind:<13}{', '.join(edits) or '-'}", flush=True)
    print()
    for span in answer["spans"]:
        print(f"{span['label']}: {' '.join(words[span['start']:span['end']])}")
    async for _ in session.ask({"close": True}):
        pass
    await connection.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Labels words while they arrive, over NATS.")
    server = "nats://localhost:4222"
    parser.add_argument("--server", default=server, help="where NATS is [%(default)s]")
    parser.add_argument("--cell", default="tapir", help="the cell [%(default)s]")
    parser.add_argument("words", help="what is said, as one argument")
    args = parser.parse_args()
    try:
        asyncio.run(main(args.server, args.cell, args.words.split()))
    except (OSError, nats.errors.Error, NotFoundError) as error:
        raise SystemExit(f"{args.server}: {error or type(error).__name__}; is there a worker?")
