//! The bytes of a document that is written anew: PDF 1.7 with object streams and a cross-reference stream (ISO 32000-1, 7.5.7 and
//! 7.5.8), in which everything is compressed. A structure tree has several objects for each cell of a table, and they are
//! alike.

use std::{
    collections::{BTreeMap, HashSet},
    io::Write as _,
    mem,
};

use flate2::{Compression, write::ZlibEncoder};
use lopdf::{Dictionary, Document, Object, ObjectId, ObjectStream, Stream, Writer, dictionary};

/// Objects in one stream: a reader decompresses all of them for one.
const MAX_OBJECTS: usize = 200;
/// Bytes of the fields of an entry of the cross-reference stream.
const FIELDS: [i64; 3] = [1, 4, 2];
/// An entry: the kind, and the place or the stream; and the generation or the place in the stream.
type Entry = [u8; 7];

/// Where the objects are that are not in the document itself.
#[derive(Debug, Default)]
pub(super) struct Packed(BTreeMap<u32, Entry>);

fn entry(kind: u8, at: u32, second: u16) -> Entry {
    let mut entry = [kind; 7];
    entry[1..5].copy_from_slice(&at.to_be_bytes());
    entry[5..].copy_from_slice(&second.to_be_bytes());
    entry
}

/// Moves the objects of a document to object streams, which are to be encrypted as a whole. The information dictionary stays
/// outside, for programs that look only for that.
pub(super) fn pack(document: &mut Document) -> lopdf::Result<Packed> {
    let info = document.trailer.get(b"Info").and_then(Object::as_reference).ok();
    // The browser has the length of a stream in an object, which follows the stream.
    let mut lengths: HashSet<ObjectId> = HashSet::new();
    for object in document.objects.values_mut() {
        if let Object::Stream(stream) = object {
            lengths.extend(stream.dict.get(b"Length").and_then(Object::as_reference));
            stream.dict.set("Length", i64::try_from(stream.content.len()).unwrap_or(i64::MAX));
        }
    }
    let is_kept =
        |id: ObjectId, object: &Object| matches!(object, Object::Stream(_)) || id.1 != 0 || Some(id) == info;
    let (kept, packed): (BTreeMap<_, _>, BTreeMap<_, _>) =
        mem::take(&mut document.objects).into_iter().partition(|(id, object)| is_kept(*id, object));
    document.objects = kept;
    let mut entries = BTreeMap::new();
    let mut left = packed.into_iter().filter(|(id, _)| !lengths.contains(id)).peekable();
    while left.peek().is_some() {
        let mut stream = ObjectStream::builder().max_objects(MAX_OBJECTS).build();
        let container = document.try_new_object_id()?;
        for (index, (id, object)) in (0..).zip(left.by_ref().take(MAX_OBJECTS)) {
            stream.add_object(id, object)?;
            entries.insert(id.0, entry(2, container.0, index));
        }
        document.set_object(container, stream.to_stream_object()?);
    }
    Ok(Packed(entries))
}

/// The file of a document and of the objects that have been moved from it.
pub(super) fn file(document: &Document, Packed(mut entries): Packed) -> lopdf::Result<Vec<u8>> {
    let mut file = format!("%PDF-{}\n%", document.version).into_bytes();
    // Bytes that no text has, so that the file is not taken for one.
    file.extend([0xe2, 0xe3, 0xcf, 0xd3, b'\n']);
    let place =
        |file: &Vec<u8>| u32::try_from(file.len()).map_err(|_| lopdf::Error::InvalidOffset(file.len()));
    for (&(id, generation), object) in &document.objects {
        entries.insert(id, entry(1, place(&file)?, generation));
        writeln!(file, "{id} {generation} obj")?;
        Writer::write_object(&mut file, object)?;
        file.extend(b"\nendobj\n");
    }
    let start = place(&file)?;
    let id = document.max_id.checked_add(1).ok_or(lopdf::Error::ObjectIdOverflow)?;
    entries.insert(0, entry(0, 0, u16::MAX));
    entries.insert(id, entry(1, start, 0));
    let mut trailer = document.trailer.clone();
    for (key, value) in dictionary! {
        "Type" => "XRef",
        "Size" => i64::from(id) + 1,
        "W" => FIELDS.map(Object::from).to_vec(),
        "Index" => sections(&entries),
    } {
        trailer.set(key, value);
    }
    for of_former_file in [&b"Prev"[..], b"XRefStm", b"DecodeParms", b"Filter"] {
        trailer.remove(of_former_file);
    }
    writeln!(file, "{id} 0 obj")?;
    Writer::write_object(&mut file, &Object::Stream(compressed(trailer, &entries)?))?;
    write!(file, "\nendobj\nstartxref\n{start}\n%%EOF\n")?;
    Ok(file)
}

/// Puts a line feed after compressed data that end in a carriage return, which validators take for a part of the end of the
/// line before `endstream`. Decoders read no further than the end of the data.
pub(super) fn end_stream(stream: &mut Stream) -> lopdf::Result<()> {
    if !stream.content.ends_with(b"\r") {
        return Ok(());
    }
    let mut content = std::mem::take(&mut stream.content);
    if !stream.dict.has(b"Filter") {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&content)?;
        content = encoder.finish()?;
        stream.dict.set("Filter", "FlateDecode");
    }
    content.push(b'\n');
    stream.set_content(content);
    Ok(())
}

/// The numbers of the first object and of the objects of each part without gaps.
fn sections(entries: &BTreeMap<u32, Entry>) -> Vec<Object> {
    let mut sections: Vec<(u32, u32)> = Vec::new();
    for &id in entries.keys() {
        match sections.last_mut() {
            Some((first, count)) if id - *first == *count => *count += 1,
            _ => sections.push((id, 1)),
        }
    }
    sections.into_iter().flat_map(|(first, count)| [first, count]).map(Object::from).collect()
}

/// The cross-reference stream, with the difference of each entry from the one before it, most of which are equal.
fn compressed(dictionary: Dictionary, entries: &BTreeMap<u32, Entry>) -> lopdf::Result<Stream> {
    // The predictor "up" of PNG.
    let (mut rows, mut before) = (Vec::new(), [0; 7]);
    for entry in entries.values() {
        rows.push(2);
        rows.extend(entry.iter().zip(before).map(|(byte, above)| byte.wrapping_sub(above)));
        before = *entry;
    }
    let mut stream = Stream::new(dictionary.clone(), rows);
    stream.compress()?;
    if !stream.dict.has(b"Filter") {
        return Ok(Stream::new(dictionary, entries.values().flatten().copied().collect()));
    }
    let columns = FIELDS.iter().sum::<i64>();
    stream.dict.set("DecodeParms", dictionary! { "Predictor" => 12, "Columns" => columns });
    end_stream(&mut stream)?;
    Ok(stream)
}
