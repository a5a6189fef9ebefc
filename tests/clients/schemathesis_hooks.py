"""Requests of schemathesis use the template and the page that the environment names."""

import os
import re

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if not isinstance(body, dict):
        return
    if body.get("templateId") == "tpl_0123456789abcdefghij":
        body["templateId"] = os.environ["PLATEN_TEMPLATE"]
    url = body.get("url")
    if isinstance(url, str) and len(url) <= 2048 and re.fullmatch(r"(?i)https?://[^\s\x00-\x1f\x7f]+", url):
        body["url"] = os.environ["PLATEN_SITE"]
