"""Renders with a client of openapi-python-client. Prints the error of an invalid request."""

import json
import os
from pathlib import Path

from platen_client import AuthenticatedClient
from platen_client.api.render import render, render_template
from platen_client.models import (
    Clip,
    Error,
    Margins,
    RenderRequest,
    RenderRequestFormat,
    RenderRequestPdfFormat,
    TemplateRenderRequest,
    TemplateRenderRequestFormat,
    TemplateRenderRequestVariables,
)
from platen_client.types import File

client = AuthenticatedClient(base_url=os.environ["PLATEN_URL"], token=os.environ["PLATEN_KEY"])


def save(name: str, answer: File | Error | None) -> None:
    if not isinstance(answer, File):
        raise SystemExit(f"{name}: {answer}")
    Path(name).write_bytes(answer.payload.read())


save(
    "page.pdf",
    render.sync(
        client=client,
        body=RenderRequest(
            html="<h1>First</h1><h1 style='break-before: page'>Second</h1>",
            format_=RenderRequestFormat.PDF,
            pdf_format=RenderRequestPdfFormat.A5,
            landscape=True,
            margin=Margins(top="20mm", left=40),
            page_ranges="2",
        ),
    ),
)
save(
    "picture.png",
    render.sync(
        client=client,
        body=RenderRequest(
            html="<body style='background: lime'>",
            format_=RenderRequestFormat.PNG,
            clip=Clip(x=0, y=0, width=60, height=40),
        ),
    ),
)
save(
    "template.pdf",
    render_template.sync(
        client=client,
        body=TemplateRenderRequest(
            template_id=os.environ["PLATEN_TEMPLATE"],
            variables=TemplateRenderRequestVariables.from_dict(
                {"customer": "Ann", "total": 10.5, "markup": "<b>Paid</b>"}
            ),
            format_=TemplateRenderRequestFormat.PDF,
            margin="10mm",
        ),
    ),
)

refused = render.sync_detailed(client=client, body=RenderRequest(html="x", width=0))
assert isinstance(refused.parsed, Error)
error: Error = refused.parsed
print(json.dumps([int(refused.status_code), error.code, error.field, error.error]))


def wrong_types() -> None:
    """mypy refuses this function without the comments; it is not called."""
    RenderRequest(html="x", width="wide")  # type: ignore[arg-type]
    RenderRequest(html="x", format_="gif")  # type: ignore[arg-type]
    RenderRequest(html="x", paper="A4")  # type: ignore[call-arg]
    TemplateRenderRequest()  # type: ignore[call-arg]
