"""Prints the name and the profile of the invoice in each PDF, after the library has compared it with the profile's schema."""

import sys
from pathlib import Path

from facturx import get_level, get_xml_from_pdf
from lxml import etree

for file in sys.argv[1:]:
    name, xml = get_xml_from_pdf(Path(file).read_bytes(), check_xsd=True)
    print(name, get_level(etree.fromstring(xml)))
