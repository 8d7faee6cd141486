"""What many put before a tool in Python: FastAPI on uvicorn, one process, the input held
against a JSON Schema, nothing recorded.

    python3 peer.py PORT SCHEMA
"""

import json
import sys

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from jsonschema import Draft202012Validator

app = FastAPI()
validator = Draft202012Validator(json.loads(sys.argv[2]))


@app.post("/")
async def echo(request: Request) -> JSONResponse:
    """Answer the input."""
    body = await request.json()
    validator.validate(body)
    return JSONResponse(body)


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
