"""A client of the daemon in Python's standard library: pairs, makes a session, appends, follows it and searches.

    zeroclaw devices pair --json            gives CODE; config.toml has `[state.http]` with `listen = "127.0.0.1:42680"`
    python3 client.py http://127.0.0.1:42680 CODE AGENT
"""

import json
import sys
from urllib.request import Request, urlopen

base, code, agent = sys.argv[1:]
headers = {"Content-Type": "application/json"}


def post(path, body):
    return json.load(urlopen(Request(base + path, json.dumps(body).encode(), headers)))


def call(method, **params):
    answer = post("/rpc", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    if "error" in answer:
        sys.exit(f"{method}: {answer['error']['message']}")
    return answer["result"]


# The token is told once: a program that comes again keeps it as it would a password.
headers["Authorization"] = "Bearer " + post("/pair", {"code": code, "name": "client.py"})["token"]
session = call("sessions.create", agent=agent, session={"key": f"python:{code}"})["session_id"]
events = urlopen(Request(f"{base}/api/events?session={session}", headers=headers))
message = {"event_type": "message", "role": "user", "text": "a heron stands by the harbour"}
call("sessions.append", agent=agent, session={"id": session}, events=[message], idempotency_key="first")
# An event says that there is something new; the rows say what.
told = next(json.loads(line[5:]) for line in events if line.startswith(b"data:") and b"session.appended" in line)
page = call("sessions.show", agent=agent, session=session)
print("event", told["last_seq"], "says", page["events"][-1]["text"])
hits = call("sessions.search", agent=agent, text="heron")["hits"]
print("messages found:", len(hits))
