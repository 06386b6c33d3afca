"""Requests to the studio, as its page sends them."""

from __future__ import annotations

import json
import os
import time

from tests.support.waiting import until

PORT, TOKEN = 8765, "a-token-that-nobody-knows"
HOME = f"http://127.0.0.1:{PORT}"
RIGHT = {
    "origin": HOME,
    "x-studio-token": TOKEN,
    "content-type": "application/json",
    "sec-fetch-site": "same-origin",
}
ADULT = {"data": "adult", "sensitive": ["race"], "useful": ["sex"], "epsilon": 1, "alpha": 0.05}


def asked(client, path, **body):
    return client.post(f"/api/{path}", content=json.dumps(body), headers=RIGHT)


def uploaded(client, name, content):
    headers = RIGHT | {"content-type": "application/octet-stream"}
    return client.post("/api/files", params={"name": name}, content=content, headers=headers)


def ended(client, job):
    def told():
        now = client.get(f"/api/jobs/{job['id']}").json()
        return now if now["state"] != "running" else None

    return until(told, "the end of the job")


def designed(client, **choice):
    job = ended(client, asked(client, "design", **choice).json())
    assert job["error"] is None
    return job


# --- what stands for a search in a process of its own --------------------------------------------


def stubborn(tell):
    """Never ends, whatever it is asked."""
    tell("begun", None)
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            tell("asked", None)


def obedient(tell):
    """Hands over its best when it is asked to."""
    tell("begun", None)
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        return "the best so far"


def dying(_):
    """Ends as a process does that the system ends."""
    os._exit(9)
