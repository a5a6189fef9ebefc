//! What a file gets after the browser has printed it.
//!
//! The file is written anew: an update at its end would keep the browser's dates and ids in it, so that equal jobs would
//! not give equal files. A language alone is such an update.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use lopdf::{
    Document, EncryptionState, EncryptionVersion, Object, Permissions,
    encryption::crypt_filters::{Aes256CryptFilter, CryptFilter},
    text_string,
};
use platen_shared::{
    job::{DocumentOptions, PdfOptions, Permission, Protection},
    limits,
    locale::Locale,
    refusal::Refusal,
};
use tokio::task::spawn_blocking;

use super::{
    attachments, document, first_page, metadata, object_streams, origins::Reading, standard, structure,
};
use crate::error::JobError;

/// Whether the options ask for more than the browser prints, apart from the first page and the language.
pub(super) fn is_needed(pdf: &PdfOptions) -> bool {
    pdf.tagged || pdf.document != DocumentOptions::default()
}

/// Reads a file. `first_page` is a file of the first page, as it must be in this one; `headings` are the texts of the page's
/// headings, if the document has an outline.
pub(super) async fn read(
    file: Bytes,
    first_page: Option<Bytes>,
    pdf: &PdfOptions,
    headings: Vec<String>,
) -> Result<Document, JobError> {
    let pdf = pdf.clone();
    let read = spawn_blocking(move || read_now(&file, first_page.as_deref(), &pdf, &headings)).await;
    read.map_err(|_| JobError::NoFile)?
}

fn read_now(
    file: &[u8],
    first_page: Option<&[u8]>,
    pdf: &PdfOptions,
    headings: &[String],
) -> Result<Document, JobError> {
    let mut document = Document::load_mem(file)?;
    for (id, title) in document::changed_titles(&document, headings) {
        document.get_dictionary_mut(id)?.set("Title", text_string(&title));
    }
    if let Some(page) = first_page {
        first_page::insert(&mut document, page, pdf)?;
    }
    Ok(document)
}

/// The file with what the options ask for. `language` is that of the document.
pub(super) async fn finish(
    document: Document,
    pdf: &PdfOptions,
    language: Option<Locale>,
    reading: Reading,
) -> Result<Bytes, JobError> {
    let pdf = pdf.clone();
    let finished = spawn_blocking(move || finished(document, &pdf, language.as_ref(), &reading)).await;
    finished.map_err(|_| JobError::NoFile)?
}

fn finished(
    mut document: Document,
    pdf: &PdfOptions,
    language: Option<&Locale>,
    reading: &Reading,
) -> Result<Bytes, JobError> {
    let options = &pdf.document;
    metadata::set_language(&mut document, language)?;
    let is_described = metadata::is_wanted(options);
    if is_described {
        metadata::set_info(&mut document, &options.metadata)?;
    }
    attachments::add(&mut document, options)?;
    if is_described {
        standard::apply(&mut document, options, reading)?;
        let mut schemas = standard::schemas(options.standard);
        schemas.extend(options.invoice.as_ref().map(attachments::invoice_schema));
        metadata::add_xmp(&mut document, options.archive(), &schemas)?;
    }
    if pdf.tagged {
        structure::renumber_ids(&mut document)?;
    }
    metadata::set_id(&mut document);
    "1.7".clone_into(&mut document.version);
    let packed = object_streams::pack(&mut document)?;
    end_streams(&mut document)?;
    if let Some(protection) = &options.protection {
        protect(&mut document, protection)?;
    }
    Ok(object_streams::file(&document, packed)?.into())
}

fn end_streams(document: &mut Document) -> lopdf::Result<()> {
    document
        .objects
        .values_mut()
        .filter_map(|object| object.as_stream_mut().ok())
        .try_for_each(object_streams::end_stream)
}

const FILTER: &[u8] = b"StdCF";

/// Encrypts a document that is complete, not encrypted, and has its objects in object streams: with AES-256, revision 6 of the
/// standard security handler (ISO 32000-2).
///
/// # Errors
/// [`Refusal::InvalidPassword`] if a reader could not take a password.
fn protect(document: &mut Document, protection: &Protection) -> Result<(), JobError> {
    let user_password = prepared(protection.user_password.as_str())?;
    let owner_password = match protection.owner_password.as_str() {
        // A random one that is not kept: an empty one would open the file with all rights.
        "" => format!("{:032x}", rand::random::<u128>()),
        password => prepared(password)?,
    };
    let filter: Arc<dyn CryptFilter> = Arc::new(Aes256CryptFilter);
    let encryption = EncryptionState::try_from(EncryptionVersion::V5 {
        encrypt_metadata: true,
        crypt_filters: BTreeMap::from([(FILTER.to_vec(), filter)]),
        file_encryption_key: &rand::random::<[u8; 32]>(),
        stream_filter: FILTER.to_vec(),
        string_filter: FILTER.to_vec(),
        owner_password: &owner_password,
        user_password: &user_password,
        permissions: permissions(&protection.allow),
    })?;
    // An encrypted file must have an id, and this encryption is part of PDF 2.0.
    let id = Object::string_literal(rand::random::<[u8; 16]>());
    document.trailer.set("ID", vec![id.clone(), id]);
    "2.0".clone_into(&mut document.version);
    document.encrypt(&encryption)?;
    Ok(())
}

/// A password in the form of which readers make the key (`SASLprep`).
fn prepared(password: &str) -> Result<String, JobError> {
    let prepared = stringprep::saslprep(password).ok();
    let prepared = prepared.filter(|it| it.len() <= limits::MAX_PDF_PASSWORD_BYTES);
    Ok(prepared.ok_or(JobError::Refused(Refusal::InvalidPassword))?.into_owned())
}

fn permissions(allow: &[Permission]) -> Permissions {
    let bits = |permission: &Permission| match permission {
        Permission::Print => Permissions::PRINTABLE | Permissions::PRINTABLE_IN_HIGH_QUALITY,
        Permission::Copy => Permissions::COPYABLE,
        Permission::Modify => Permissions::MODIFIABLE,
        Permission::Annotate => Permissions::ANNOTABLE,
        Permission::Fill => Permissions::FILLABLE,
        Permission::Assemble => Permissions::ASSEMBLABLE,
    };
    // Programs for people who cannot see may always read the text.
    allow.iter().map(bits).fold(Permissions::COPYABLE_FOR_ACCESSIBILITY, |all, these| all | these)
}

#[cfg(test)]
mod properties {
    //! A page can influence the bytes of its file, so no file may stop the farm.

    use lopdf::{Dictionary, Stream};
    use platen_shared::{format::PaperSize, job::PdfStandard};
    use proptest::prelude::*;

    use super::{super::texts, *};

    /// Two pages of Chromium with a table, a transparent element, links, and a header.
    const FILE: &[u8] = include_bytes!("../../../../fixtures/tagged.pdf");

    /// The places of digits, most of which are those of references and lengths.
    fn digits() -> Vec<usize> {
        let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        let is_digit = |at: &usize| FILE[*at].is_ascii_digit() && FILE[at - 6..at + 6].iter().all(is_text);
        (6..FILE.len() - 6).filter(is_digit).collect()
    }

    fn change() -> impl Strategy<Value = (usize, u8)> {
        prop_oneof![
            4 => (prop::sample::select(digits()), b'0'..=b'9'),
            1 => (0..FILE.len(), any::<u8>()),
        ]
    }

    fn changed() -> impl Strategy<Value = Vec<u8>> {
        let length = prop_oneof![4 => Just(FILE.len()), 1 => 0..FILE.len()];
        (prop::collection::vec(change(), 0..8), length).prop_map(|(changes, length)| {
            let mut file = FILE.to_vec();
            for (at, byte) in changes {
                file[at] = byte;
            }
            file.truncate(length);
            file
        })
    }

    fn options() -> PdfOptions {
        let protection = Protection {
            user_password: "user".to_owned().try_into().unwrap(),
            owner_password: String::new().try_into().unwrap(),
            allow: vec![Permission::Print],
        };
        let document = DocumentOptions { protection: Some(protection), ..DocumentOptions::default() };
        PdfOptions { document, ..options_without_password() }
    }

    fn options_without_password() -> PdfOptions {
        PdfOptions { tagged: true, ..PdfOptions::new(PaperSize::A4.into()) }
    }

    fn finish_now(document: Document) -> Result<Bytes, JobError> {
        let content = texts::content(&document)?;
        let readable = PdfOptions { document: readable(), ..options() };
        let language = "en".to_owned().try_into().unwrap();
        let reading = Reading { content, origins: None };
        let _ = finished(document.clone(), &readable, Some(&language), &reading);
        finished(document, &options(), None, &Reading::default())
    }

    fn readable() -> DocumentOptions {
        let standard = PdfStandard { ua1: true, ..PdfStandard::default() };
        DocumentOptions { standard, ..DocumentOptions::default() }
    }

    proptest! {
        #[test]
        fn no_file_causes_a_panic(file in changed(), first in changed()) {
            for file in [file.as_slice(), FILE] {
                let _ = read_now(file, Some(&first), &options(), &[]).map(finish_now);
            }
        }
    }

    /// The file with more at the end of its first page.
    fn with_text(more: &str) -> Vec<u8> {
        let mut document = Document::load_mem(FILE).unwrap();
        let page = document.page_iter().next().unwrap();
        let content = [&document.get_page_content(page)[..], more.as_bytes()].concat();
        document.change_page_content(page, content).unwrap();
        let mut file = Vec::new();
        document.save_to(&mut file).unwrap();
        file
    }

    #[test]
    fn the_first_page_has_the_same_text_in_both_files() {
        let header = Some("<p>".to_owned().try_into().unwrap());
        let pdf = PdfOptions { header: header.clone(), first_header: header, ..options() };
        let read = |every: &str, first: &str| read_now(&with_text(every), Some(&with_text(first)), &pdf, &[]);
        let text = |glyphs: &str, size: f32| format!("\nBT /F4 {size} Tf <{glyphs}> Tj ET\n");
        let [one, two, mark] =
            [("0001", 9.0), ("0002", 9.0), ("0003", 1.37)].map(|(it, size)| text(it, size));
        let [one_marked, two_marked] = [&one, &two].map(|it| format!("{mark}{it}"));
        assert!(read(&one_marked, &two_marked).is_ok(), "only the headers differ");
        for (every, first) in [
            (format!("{one}{mark}"), two_marked),
            (one_marked, format!("{two}{mark}")),
            (format!("{one}{mark}"), format!("{two}{mark}")),
        ] {
            let refused = read(&every, &first).unwrap_err();
            assert!(matches!(refused, JobError::Refused(Refusal::FirstPageChanged)), "{refused:?}");
        }
    }

    #[test]
    fn no_stream_ends_in_a_carriage_return() {
        let mut document = Document::load_mem(FILE).unwrap();
        let stream = |content: &[u8]| Stream::new(Dictionary::new(), content.to_vec());
        let mut added = vec![(document.add_object(stream(b"a\r\r")), b"a\r\r".to_vec())];
        for content in (100..2_000).map(|length| vec![b'a'; length]) {
            let mut stream = stream(&content);
            stream.compress().unwrap();
            if stream.content.ends_with(b"\r") {
                added.push((document.add_object(stream), content));
            }
        }
        assert!(added.len() > 2);
        end_streams(&mut document).unwrap();
        let mut file = Vec::new();
        document.save_to(&mut file).unwrap();
        assert!(!file.windows(11).any(|it| it == b"\r\nendstream"));
        let document = Document::load_mem(&file).unwrap();
        for (id, content) in added {
            let stream = document.get_object(id).and_then(Object::as_stream).unwrap();
            assert_eq!(stream.get_plain_content().unwrap(), content);
        }
    }

    #[test]
    fn no_stream_of_objects_ends_in_a_carriage_return() {
        for length in 0..512 {
            let mut document = Document::load_mem(FILE).unwrap();
            document.add_object(Object::string_literal("a".repeat(length)));
            let file = finished(document, &options_without_password(), None, &Reading::default()).unwrap();
            assert!(!file.windows(11).any(|it| it == b"\r\nendstream"), "{length}");
        }
    }

    #[test]
    fn a_file_without_changes_is_finished() {
        finish_now(read_now(FILE, Some(FILE), &options(), &[]).unwrap()).unwrap();
    }
}
