"""Renders with a client of openapi-generator's `python`. Prints the error of an invalid request."""

import json
import os
from pathlib import Path

import openapi_client
from openapi_client import Clip, Error, Margins, RenderRequest, RenderRequestMargin, TemplateRenderRequest
from openapi_client.models.length import Length
from openapi_client.models.template_render_request_variables_value import TemplateRenderRequestVariablesValue

configuration = openapi_client.Configuration(
    host=os.environ["PLATEN_URL"], access_token=os.environ["PLATEN_KEY"]
)
api = openapi_client.RenderApi(openapi_client.ApiClient(configuration))

page = api.render(
    RenderRequest(
        html="<h1>First</h1><h1 style='break-before: page'>Second</h1>",
        format="pdf",
        pdfFormat="A5",
        landscape=True,
        margin=RenderRequestMargin(Margins(top=Length("20mm"), left=Length(40))),
        pageRanges="2",
    )
)
Path("page.pdf").write_bytes(page)

clip = Clip(x=0, y=0, width=60, height=40)
picture = api.render(RenderRequest(html="<body style='background: lime'>", format="png", clip=clip))
Path("picture.png").write_bytes(picture)

template = api.render_template(
    TemplateRenderRequest(
        templateId=os.environ["PLATEN_TEMPLATE"],
        variables={
            name: TemplateRenderRequestVariablesValue(value)
            for name, value in {"customer": "Ann", "total": 10.5, "markup": "<b>Paid</b>"}.items()
        },
        format="pdf",
        margin=RenderRequestMargin("10mm"),
    )
)
Path("template.pdf").write_bytes(template)

try:
    # The client checks the bounds of the document, but not whether a time zone exists.
    api.render(RenderRequest(html="x", timezone="Mars/Olympus"))
except openapi_client.ApiException as exception:
    error = exception.data
    assert isinstance(error, Error)
    print(json.dumps([exception.status, error.code, error.var_field, error.error]))


def wrong_types() -> None:
    """mypy refuses this function without the comments; it is not called."""
    RenderRequest(html="x", width="wide")  # type: ignore[arg-type]
    RenderRequest(html="x", paper="A4")  # type: ignore[call-arg]
    TemplateRenderRequest()  # type: ignore[call-arg]
