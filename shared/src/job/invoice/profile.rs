//! The profiles of Factur-X 1.0 and `ZUGFeRD` 2, and their names in a PDF.

/// A profile of Factur-X and `ZUGFeRD`, which says how much of an invoice is in its XML.
#[derive(Debug, PartialEq, Eq)]
pub struct InvoiceProfile {
    /// The text of the guideline's element.
    pub(super) guideline: &'static str,
    /// Its name in the metadata of a PDF.
    pub conformance_level: &'static str,
    /// The version of Factur-X, or of `XRechnung`, in the metadata of a PDF.
    pub version: &'static str,
    /// The name of the XML in a PDF.
    pub file_name: &'static str,
    /// Whether the XML is an alternative to the pages; otherwise it is less than the invoice, and data of them.
    pub is_alternative: bool,
}

const fn factur_x(
    guideline: &'static str,
    conformance_level: &'static str,
    is_alternative: bool,
) -> InvoiceProfile {
    InvoiceProfile { guideline, conformance_level, version: "1.0", file_name: "factur-x.xml", is_alternative }
}

const fn xrechnung(guideline: &'static str, version: &'static str) -> InvoiceProfile {
    InvoiceProfile {
        guideline,
        conformance_level: "XRECHNUNG",
        version,
        file_name: "xrechnung.xml",
        is_alternative: true,
    }
}

pub(super) static PROFILES: [InvoiceProfile; 10] = [
    factur_x("urn:factur-x.eu:1p0:minimum", "MINIMUM", false),
    factur_x("urn:factur-x.eu:1p0:basicwl", "BASIC WL", false),
    factur_x("urn:cen.eu:en16931:2017#compliant#urn:factur-x.eu:1p0:basic", "BASIC", true),
    factur_x("urn:cen.eu:en16931:2017", "EN 16931", true),
    factur_x("urn:cen.eu:en16931:2017#conformant#urn:factur-x.eu:1p0:extended", "EXTENDED", true),
    xrechnung("urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.0", "2.0"),
    xrechnung("urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.1", "2.1"),
    xrechnung("urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.2", "2.2"),
    xrechnung("urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.3", "2.3"),
    xrechnung("urn:cen.eu:en16931:2017#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0", "3.0"),
];
