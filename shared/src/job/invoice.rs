//! An invoice as XML: a Cross Industry Invoice, which Factur-X and `ZUGFeRD` put into a PDF.
//!
//! The text is read as a stream and never as a tree. A DTD ends the reading, so no entity of the text is expanded.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::xml_reader::{
    MAX_ATTRIBUTES, MAX_ELEMENTS, MAX_NAMESPACES, MAX_NESTING, XmlError, XmlEvent, XmlReader,
};
use crate::limits;

/// Characters of names in messages. No name or guideline of an invoice is longer.
const MAX_NAME_CHARS: usize = 128;

const NAMESPACE: &str = "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100";
/// The prefixes of namespaces in the paths below and in messages, whichever the text has.
const PREFIXES: [(&str, &str); 3] = [
    (NAMESPACE, "rsm"),
    ("urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100", "ram"),
    ("urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100", "udt"),
];
const ROOT: (&str, &str) = ("rsm", "CrossIndustryInvoice");

/// The element whose text is the profile, in the root.
const GUIDELINE: &str = "rsm:ExchangedDocumentContext/ram:GuidelineSpecifiedDocumentContextParameter/ram:ID";
/// The element that may be empty, in the root.
const DELIVERY: &str = "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeDelivery";
/// What every profile requires, in the root: the elements of MINIMUM, each with a text.
const REQUIRED: [&str; 11] = [
    GUIDELINE,
    "rsm:ExchangedDocument/ram:ID",
    "rsm:ExchangedDocument/ram:TypeCode",
    "rsm:ExchangedDocument/ram:IssueDateTime/udt:DateTimeString",
    "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeAgreement/ram:SellerTradeParty/ram:Name",
    "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeAgreement/ram:BuyerTradeParty/ram:Name",
    DELIVERY,
    "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeSettlement/ram:InvoiceCurrencyCode",
    "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeSettlement/ram:SpecifiedTradeSettlementHeaderMonetarySummation/ram:TaxBasisTotalAmount",
    "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeSettlement/ram:SpecifiedTradeSettlementHeaderMonetarySummation/ram:GrandTotalAmount",
    "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeSettlement/ram:SpecifiedTradeSettlementHeaderMonetarySummation/ram:DuePayableAmount",
];

/// The XML of an invoice: well-formed, with a known profile and the elements that all profiles require. At most
/// [`limits::MAX_INVOICE_BYTES`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InvoiceXml {
    text: String,
    profile: &'static InvoiceProfile,
}

impl InvoiceXml {
    /// The names under which readers look for the XML of an invoice, in lower case.
    pub const FILE_NAMES: [&str; 3] = ["factur-x.xml", "xrechnung.xml", "zugferd-invoice.xml"];

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The profile.
    #[must_use]
    pub fn profile(&self) -> &'static InvoiceProfile {
        self.profile
    }
}

impl fmt::Debug for InvoiceXml {
    /// Shows no content, because that of the caller must not appear in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InvoiceXml({}, {} bytes)", self.profile.conformance_level, self.text.len())
    }
}

impl From<InvoiceXml> for String {
    fn from(invoice: InvoiceXml) -> Self {
        invoice.text
    }
}

/// Why a text is no invoice. `Display` continues after the name of the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum InvalidInvoice {
    #[error("must be at most {} bytes of UTF-8", limits::MAX_INVOICE_BYTES)]
    TooLarge,
    /// The parser's message with line and column.
    #[error("must be well-formed XML: {0}")]
    Syntax(String),
    #[error("must be XML 1.0 in UTF-8; its declaration says otherwise")]
    Declaration,
    #[error("must have no DTD")]
    Dtd,
    #[error(
        "must have at most {MAX_ELEMENTS} elements, {MAX_NESTING} of them inside each other, {MAX_NAMESPACES} namespaces, \
         and {MAX_ATTRIBUTES} attributes of an element"
    )]
    Complexity,
    #[error("must have the root element \"CrossIndustryInvoice\" of the namespace {NAMESPACE}, not \"{0}\"")]
    Root(String),
    #[error("has the unknown guideline \"{0}\" in {GUIDELINE}")]
    Guideline(String),
    #[error("has no element {0}")]
    NoElement(&'static str),
}

impl From<XmlError> for InvalidInvoice {
    fn from(error: XmlError) -> Self {
        match error {
            XmlError::Syntax(text) => Self::Syntax(shortened(&text)),
            XmlError::Declaration => Self::Declaration,
            XmlError::Dtd => Self::Dtd,
            XmlError::Complexity => Self::Complexity,
        }
    }
}

impl TryFrom<String> for InvoiceXml {
    type Error = InvalidInvoice;

    fn try_from(text: String) -> Result<Self, InvalidInvoice> {
        if text.len() > limits::MAX_INVOICE_BYTES {
            return Err(InvalidInvoice::TooLarge);
        }
        let profile = profile_of(&text)?;
        Ok(Self { text, profile })
    }
}

fn profile_of(text: &str) -> Result<&'static InvoiceProfile, InvalidInvoice> {
    let mut reader = XmlReader::new(text);
    let mut missing = REQUIRED.to_vec();
    let mut guideline = String::new();
    let mut is_root = true;
    // Of the innermost open element, in the root.
    let mut path = String::new();
    while let Some(event) = reader.next()? {
        match event {
            XmlEvent::Start { namespace, name } if is_root => {
                if (prefix(namespace), name) != ROOT {
                    return Err(InvalidInvoice::Root(shortened(name)));
                }
                is_root = false;
            }
            XmlEvent::Start { namespace, name } => {
                for part in ["/", prefix(namespace), ":", name] {
                    path.push_str(part);
                }
                missing.retain(|required| *required != DELIVERY || *required != &path[1..]);
            }
            XmlEvent::End => path.truncate(path.rfind('/').unwrap_or_default()),
            XmlEvent::Text(text) if !text.trim().is_empty() => {
                missing.retain(|required| path.get(1..) != Some(required));
                if path.get(1..) == Some(GUIDELINE) {
                    guideline += &text;
                }
            }
            XmlEvent::Text(_) => {}
        }
    }
    if let Some(required) = missing.first() {
        return Err(InvalidInvoice::NoElement(required));
    }
    let guideline = guideline.trim();
    let profile = PROFILES.iter().find(|profile| profile.guideline == guideline);
    profile.ok_or_else(|| InvalidInvoice::Guideline(shortened(guideline)))
}

/// The prefix of a namespace in [`PREFIXES`], which is empty for another one.
fn prefix(namespace: &str) -> &'static str {
    PREFIXES.iter().find(|(known, _)| *known == namespace).map_or("", |(_, prefix)| prefix)
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_NAME_CHARS).collect()
}

/// A profile of Factur-X and `ZUGFeRD`, which says how much of an invoice is in its XML.
#[derive(Debug, PartialEq, Eq)]
pub struct InvoiceProfile {
    /// The text of the guideline's element.
    guideline: &'static str,
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

static PROFILES: [InvoiceProfile; 17] = [
    factur_x("urn:factur-x.eu:1p0:minimum", "MINIMUM", false),
    factur_x("urn:factur-x.eu:1p0:basicwl", "BASIC WL", false),
    factur_x("urn:cen.eu:en16931:2017#compliant#urn:factur-x.eu:1p0:basic", "BASIC", true),
    factur_x("urn:cen.eu:en16931:2017", "EN 16931", true),
    factur_x("urn:cen.eu:en16931:2017#conformant#urn:factur-x.eu:1p0:extended", "EXTENDED", true),
    // The profile of France (AFNOR XP Z12-012), a part of EXTENDED with further rules.
    factur_x("urn:cen.eu:en16931:2017#conformant#urn.cpro.gouv.fr:1p0:extended-ctc-fr", "EXTENDED", true),
    xrechnung("urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.0", "2.0"),
    xrechnung(
        "urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.0#conformant#urn:xoev-de:kosit:extension:xrechnung_2.0",
        "2.0",
    ),
    xrechnung("urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.1", "2.1"),
    xrechnung(
        "urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.1#conformant#urn:xoev-de:kosit:extension:xrechnung_2.1",
        "2.1",
    ),
    xrechnung("urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.2", "2.2"),
    xrechnung(
        "urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.2#conformant#urn:xoev-de:kosit:extension:xrechnung_2.2",
        "2.2",
    ),
    xrechnung("urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.3", "2.3"),
    xrechnung(
        "urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.3#conformant#urn:xoev-de:kosit:extension:xrechnung_2.3",
        "2.3",
    ),
    xrechnung("urn:cen.eu:en16931:2017#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0", "3.0"),
    xrechnung(
        "urn:cen.eu:en16931:2017#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0#conformant#urn:xeinkauf.de:kosit:extension:xrechnung_3.0",
        "3.0",
    ),
    // For clean vehicles.
    xrechnung(
        "urn:cen.eu:en16931:2017#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0#compliant#urn:xeinkauf.de:kosit:xrechnung:cvd_0.9",
        "3.0",
    ),
];

#[cfg(test)]
mod tests;
