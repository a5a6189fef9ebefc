//! The texts that a file draws: where, in which colour, and with which mark of the structure tree.

use std::collections::{HashMap, HashSet};

use lopdf::{
    Dictionary, Document, Encoding, Object, ObjectId,
    content::{Content, Operation},
    decode_text_string,
};

/// More than a page of the browser has of forms in forms.
pub(super) const MAX_FORM_DEPTH: usize = 32;
/// The colour of spaces in cells of tables, by which they are known in the file.
pub(super) const SPACE_COLOR: u32 = 0x12_34_55;
/// Parts of a point by which places are compared.
const PLACE_PARTS: f64 = 100.0;

/// The stream with a mark, which is that of a page or a form, and the number of the mark in it.
pub(super) type Mark = (ObjectId, i64);

/// What one text object (`BT` to `ET`) draws.
#[derive(Debug, Clone)]
pub(super) struct Text {
    /// The number of the page.
    pub(super) page: usize,
    /// The page or the form in whose stream it is, and its number among the text objects there.
    pub(super) object: (ObjectId, usize),
    pub(super) mark: Option<Mark>,
    /// Where it begins on the page, in parts of a point.
    pub(super) place: (i64, i64),
    /// Red, green and blue; `None` if it is a pattern.
    pub(super) color: Option<u32>,
    pub(super) content: String,
}

impl Text {
    pub(super) fn is_blank(&self) -> bool {
        self.content.chars().all(char::is_whitespace) && !self.content.is_empty()
    }

    /// The coordinates of its beginning, in points.
    #[expect(clippy::cast_precision_loss, reason = "pages are smaller")]
    pub(super) fn point(&self) -> (f64, f64) {
        (self.place.0 as f64 / PLACE_PARTS, self.place.1 as f64 / PLACE_PARTS)
    }
}

/// What the pages draw.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    /// Texts in their order. Those of a form that is drawn twice, as under a mask, are found once.
    pub(super) texts: Vec<Text>,
    pub(super) marks: HashSet<Mark>,
    /// Spaces of cells that may be empty.
    pub(super) spaces: Vec<Text>,
}

pub(super) fn content(document: &Document) -> lopdf::Result<Drawn> {
    let (seen, encodings, found) = (HashSet::new(), HashMap::new(), Drawn::default());
    let mut walk = Walk { document, seen, encodings, found };
    for (page, id) in document.page_iter().enumerate() {
        let resources = document.get_page_resources(id)?.0;
        let stream = Stream { page, id, resources, mark: None, depth: 0 };
        walk.stream(&stream, &document.get_page_content(id), IDENTITY)?;
    }
    Ok(walk.found)
}

type Matrix = [f64; 6];
const IDENTITY: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// First `inner`, then `outer`.
fn product(inner: &Matrix, outer: &Matrix) -> Matrix {
    let row = |x: f64, y: f64, one: f64| {
        let column = |at: usize| x * outer[at] + y * outer[at + 2] + one * outer[at + 4];
        [column(0), column(1)]
    };
    let rows = [row(inner[0], inner[1], 0.0), row(inner[2], inner[3], 0.0), row(inner[4], inner[5], 1.0)];
    [rows[0][0], rows[0][1], rows[1][0], rows[1][1], rows[2][0], rows[2][1]]
}

fn numbers<const N: usize>(operands: &[Object]) -> Option<[f64; N]> {
    let numbers: Option<Vec<f64>> = operands.iter().map(|it| it.as_float().ok().map(f64::from)).collect();
    numbers?.try_into().ok()
}

struct Stream<'a> {
    page: usize,
    id: ObjectId,
    resources: Option<&'a Dictionary>,
    /// That with which the stream is drawn.
    mark: Option<Mark>,
    depth: usize,
}

/// A text object that has not ended.
struct Open {
    matrix: Matrix,
    /// Place and colour of what is shown first.
    begin: Option<((i64, i64), Option<u32>)>,
    text: String,
    /// The sequences around what is shown: whether each has a text that replaces it.
    replaced: Vec<bool>,
}

impl Default for Open {
    fn default() -> Self {
        Self { matrix: IDENTITY, begin: None, text: String::new(), replaced: Vec::new() }
    }
}

impl Open {
    fn begin_sequence(&mut self, operands: &[Object]) {
        let text = property(operands, b"ActualText").and_then(|it| decode_text_string(it).ok());
        self.replaced.push(text.is_some());
        self.text += &text.unwrap_or_default();
    }

    fn advance(&mut self, operands: &[Object]) {
        let [x, y] = numbers(operands).unwrap_or_default();
        self.matrix = product(&[1.0, 0.0, 0.0, 1.0, x, y], &self.matrix);
    }

    fn show(&mut self, operands: &[Object], encoding: Option<&Encoding<'_>>) {
        if !self.replaced.contains(&true) {
            for shown in operands {
                decode(shown, encoding, &mut self.text);
            }
        }
    }
}

struct Walk<'a> {
    document: &'a Document,
    seen: HashSet<ObjectId>,
    encodings: HashMap<ObjectId, Option<Encoding<'static>>>,
    found: Drawn,
}

impl<'a> Walk<'a> {
    fn stream(&mut self, stream: &Stream<'a>, content: &[u8], matrix: Matrix) -> lopdf::Result<()> {
        let (mut matrix, mut color) = (matrix, Some(0));
        let (mut saved, mut marks) = (Vec::new(), vec![stream.mark]);
        // The number of the text object, and its font.
        let (mut count, mut font) = (0, None);
        let mut open: Option<Open> = None;
        for Operation { operator, operands } in Content::decode(content)?.operations {
            let operands = operands.as_slice();
            match (operator.as_str(), &mut open) {
                ("q", _) => saved.push((matrix, color)),
                ("Q", _) => (matrix, color) = saved.pop().unwrap_or((matrix, color)),
                ("cm", _) => matrix = numbers(operands).map_or(matrix, |own| product(&own, &matrix)),
                ("rg", _) => color = numbers(operands).map(rgb),
                ("g", _) => color = numbers(operands).map(|[gray]| rgb([gray; 3])),
                ("cs" | "sc" | "scn" | "k", _) => color = None,
                ("BDC" | "BMC", None) => {
                    let number = property(operands, b"MCID").and_then(|number| number.as_i64().ok());
                    let around = marks.last().copied().flatten();
                    let mark = number.map(|number| (stream.id, number));
                    self.found.marks.extend(mark);
                    marks.push(mark.or(around));
                }
                ("EMC", None) if marks.len() > 1 => _ = marks.pop(),
                ("BDC" | "BMC", Some(open)) => open.begin_sequence(operands),
                ("EMC", Some(open)) => _ = open.replaced.pop(),
                ("BT", _) => open = Some(Open::default()),
                ("ET", _) => {
                    let open = open.take().unwrap_or_default();
                    self.end_text(stream, open, (stream.id, count), marks.last().copied().flatten());
                    count += 1;
                }
                ("Tm", Some(open)) => open.matrix = numbers(operands).unwrap_or(open.matrix),
                ("Td", Some(open)) => open.advance(operands),
                ("Tf", _) => {
                    font = operands.first().and_then(|name| self.font(stream, name.as_name().ok()?));
                }
                ("Tj" | "TJ", Some(open)) => {
                    let [.., x, y] = product(&open.matrix, &matrix);
                    open.begin.get_or_insert(((parts(x), parts(y)), color));
                    open.show(operands, font.and_then(|font| self.encodings.get(&font)?.as_ref()));
                }
                ("Do", None) => self.form(stream, operands, marks.last().copied().flatten(), matrix)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn end_text(&mut self, stream: &Stream<'_>, open: Open, object: (ObjectId, usize), mark: Option<Mark>) {
        let Open { begin: Some((place, color)), text: content, .. } = open else { return };
        let text = Text { page: stream.page, object, mark, place, color, content };
        let is_space = color == Some(SPACE_COLOR) && text.is_blank();
        if is_space { &mut self.found.spaces } else { &mut self.found.texts }.push(text);
    }

    /// The texts of a form.
    fn form(
        &mut self,
        within: &Stream<'a>,
        operands: &[Object],
        mark: Option<Mark>,
        matrix: Matrix,
    ) -> lopdf::Result<()> {
        let Some(Ok(name)) = operands.first().map(Object::as_name) else { return Ok(()) };
        let drawn = resource(self.document, within.resources, b"XObject", name);
        let form = drawn.and_then(|id| Some((id, self.document.get_object(id).ok()?.as_stream().ok()?)));
        let Some((id, form)) = form else { return Ok(()) };
        let is_form = form.dict.get(b"Subtype").and_then(Object::as_name).is_ok_and(|kind| kind == b"Form");
        if !is_form || within.depth >= MAX_FORM_DEPTH || !self.seen.insert(id) {
            return Ok(());
        }
        let own = form.dict.get(b"Matrix").and_then(Object::as_array).ok().and_then(|it| numbers(it));
        let resources = form_resources(self.document, form);
        let stream = Stream { page: within.page, id, resources, mark, depth: within.depth + 1 };
        self.stream(&stream, &form.get_plain_content()?, own.map_or(matrix, |own| product(&own, &matrix)))
    }

    /// A font whose encoding is known.
    fn font(&mut self, stream: &Stream<'a>, name: &[u8]) -> Option<ObjectId> {
        let id = resource(self.document, stream.resources, b"Font", name)?;
        let document = self.document;
        self.encodings.entry(id).or_insert_with(|| {
            let mut font = document.get_dictionary(id).ok()?.clone();
            // That of Type 3 has names of glyphs.
            font.remove(b"Encoding");
            match font.get_font_encoding(document) {
                Ok(Encoding::UnicodeMapEncoding(map)) => Some(Encoding::UnicodeMapEncoding(map)),
                _ => None,
            }
        });
        Some(id)
    }
}

fn parts(coordinate: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a number out of range is no place of a text")]
    let parts = (coordinate * PLACE_PARTS).round() as i64;
    parts
}

/// The colour of three components.
fn rgb(components: [f64; 3]) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a byte")]
    let byte = |component: f64| (component.clamp(0.0, 1.0) * 255.0).round() as u32;
    components.into_iter().fold(0, |color, component| color << 8 | byte(component))
}

/// What a form can draw with.
pub(super) fn form_resources<'a>(document: &'a Document, form: &'a lopdf::Stream) -> Option<&'a Dictionary> {
    form.dict.get_deref(b"Resources", document).and_then(Object::as_dict).ok()
}

fn resource(
    document: &Document,
    resources: Option<&Dictionary>,
    kind: &[u8],
    name: &[u8],
) -> Option<ObjectId> {
    let all = resources?.get_deref(kind, document).and_then(Object::as_dict).ok()?;
    all.get(name).and_then(Object::as_reference).ok()
}

/// An entry of the properties of a marked sequence.
pub(super) fn property<'a>(operands: &'a [Object], key: &[u8]) -> Option<&'a Object> {
    operands.get(1)?.as_dict().ok()?.get(key).ok()
}

/// The characters of glyphs. Those without a known character have one that is no space.
fn decode(shown: &Object, encoding: Option<&Encoding<'_>>, text: &mut String) {
    match shown {
        Object::String(glyphs, _) => match encoding.map(|encoding| encoding.bytes_to_string(glyphs)) {
            Some(Ok(characters)) => *text += &characters,
            _ => text.push(char::REPLACEMENT_CHARACTER),
        },
        Object::Array(parts) => parts.iter().for_each(|part| decode(part, encoding, text)),
        _ => {}
    }
}
