//! A reader of the structure tree of a file, which checks that it fits the marks of the content.

use std::collections::{HashMap, HashSet};

use lopdf::{Dictionary, Document, Encoding, Object, ObjectId, content::Content, decode_text_string};

/// A file whose marks are read.
pub(crate) struct Reader {
    document: Document,
    marks: HashMap<(ObjectId, i64), String>,
    /// What has none.
    pub(crate) artifacts: String,
    seen: HashSet<ObjectId>,
}

impl Reader {
    pub(crate) fn new(document: Document) -> Self {
        let (marks, seen) = (HashMap::new(), HashSet::new());
        let mut reader = Self { document, marks, artifacts: String::new(), seen };
        for page in reader.document.page_iter().collect::<Vec<_>>() {
            let resources = reader.document.get_page_resources(page).unwrap().0.unwrap().clone();
            let content = reader.document.get_page_content(page);
            reader.read(page, &content, &resources, false);
        }
        reader
    }

    fn read(&mut self, stream: ObjectId, content: &[u8], resources: &Dictionary, hidden: bool) {
        let document = self.document.clone();
        let entry = |kind: &[u8], name: &Object| {
            let all = resources.get_deref(kind, &document).and_then(Object::as_dict).unwrap();
            all.get(name.as_name().unwrap()).and_then(Object::as_reference).unwrap()
        };
        let (mut open, mut font): (Vec<Option<i64>>, _) = (Vec::new(), None);
        let mut is_artifact = hidden;
        let mut in_text = false;
        for operation in Content::decode(content).unwrap().operations {
            let operand = operation.operands.first();
            match operation.operator.as_str() {
                "BT" => in_text = true,
                "ET" => in_text = false,
                "BDC" if !in_text => {
                    let number =
                        operation.operands[1].as_dict().unwrap().get(b"MCID").unwrap().as_i64().unwrap();
                    assert!(open.is_empty() && self.marks.insert((stream, number), String::new()).is_none());
                    open.push(Some(number));
                }
                "BMC" if !in_text => {
                    open.push(None);
                    is_artifact = true;
                }
                "EMC" if !in_text => {
                    open.pop().unwrap();
                    is_artifact = hidden;
                }
                "Tf" => font = Some(entry(b"Font", operand.unwrap())),
                "Tj" | "TJ" => {
                    let text = decoded(&document, font.unwrap(), operand.unwrap());
                    match open.last() {
                        Some(Some(number)) => *self.marks.get_mut(&(stream, *number)).unwrap() += &text,
                        _ if is_artifact => self.artifacts += &text,
                        _ => panic!("no tag: {text}"),
                    }
                }
                "Do" => {
                    let id = entry(b"XObject", operand.unwrap());
                    let form = document.get_object(id).unwrap().as_stream().unwrap();
                    if let (Ok(resources), true) =
                        (form.dict.get_deref(b"Resources", &document), self.seen.insert(id))
                    {
                        let content = form.get_plain_content().unwrap();
                        self.read(id, &content, resources.as_dict().unwrap(), is_artifact);
                    }
                }
                _ => {}
            }
        }
        assert!(open.is_empty());
    }

    /// What the file says, which is all that has a mark.
    pub(crate) fn tree(&mut self) -> String {
        let root = self.document.catalog().unwrap().get(b"StructTreeRoot").unwrap().as_reference().unwrap();
        let mut tree = String::new();
        self.say(root, &mut tree);
        assert!(self.marks.is_empty(), "{tree}: {:?} have no element", self.marks);
        tree
    }

    /// What an element says.
    fn say(&mut self, id: ObjectId, said: &mut String) {
        let element = self.document.get_dictionary(id).unwrap().clone();
        let role = element.get(b"S").and_then(Object::as_name).unwrap_or(b"NonStruct");
        let role = (role != b"NonStruct").then(|| String::from_utf8_lossy(role).into_owned());
        if let Some(role) = &role {
            said.extend([role.as_str(), "("]);
        }
        if let Ok(alt) = element.get(b"Alt").and_then(decode_text_string) {
            said.extend(["[", &alt, "]"]);
        }
        let kids = match element.get(b"K") {
            Ok(Object::Array(kids)) => kids.clone(),
            Ok(kid) => vec![kid.clone()],
            Err(_) => Vec::new(),
        };
        let page = element.get(b"Pg").and_then(Object::as_reference).ok();
        for kid in kids {
            match kid {
                Object::Reference(kid) => {
                    let parent = self.document.get_dictionary(kid).unwrap().get(b"P").unwrap();
                    assert_eq!(parent.as_reference().unwrap(), id);
                    self.say(kid, said);
                }
                Object::Integer(number) => *said += &self.take((page.unwrap(), number), id),
                Object::Dictionary(reference) if reference.has_type(b"OBJR") => {
                    let link = reference.get_deref(b"Obj", &self.document).unwrap().as_dict().unwrap();
                    assert_eq!(role.as_deref(), Some("Link"));
                    assert_eq!(self.parent(link.get(b"StructParent").unwrap(), None), id);
                    said.extend(["→", &decode_text_string(link.get(b"Contents").unwrap()).unwrap()]);
                }
                Object::Dictionary(reference) => {
                    let stream = ["Stm", "Pg"].iter().find_map(|key| reference.get(key.as_bytes()).ok());
                    let stream = stream.map_or(page, |it| it.as_reference().ok()).unwrap();
                    *said += &self.take((stream, reference.get(b"MCID").unwrap().as_i64().unwrap()), id);
                }
                _ => panic!("{kid:?}"),
            }
        }
        if role.is_some() {
            said.push(')');
        }
    }

    /// The text of a mark, which must be there and have its element in the parent tree.
    fn take(&mut self, mark: (ObjectId, i64), element: ObjectId) -> String {
        let owner = self.document.get_object(mark.0).unwrap();
        let owner = owner.as_dict().or_else(|_| owner.as_stream().map(|form| &form.dict)).unwrap();
        assert_eq!(self.parent(owner.get(b"StructParents").unwrap(), Some(mark.1)), element);
        self.marks.remove(&mark).unwrap_or_else(|| panic!("{mark:?} is not there"))
    }

    fn parent(&self, key: &Object, number: Option<i64>) -> ObjectId {
        let root = self.document.catalog().unwrap().get_deref(b"StructTreeRoot", &self.document).unwrap();
        let tree =
            root.as_dict().unwrap().get_deref(b"ParentTree", &self.document).unwrap().as_dict().unwrap();
        let entries = tree.get_deref(b"Nums", &self.document).unwrap().as_array().unwrap();
        let entry = entries.chunks(2).find(|entry| entry[0] == *key).unwrap();
        let elements = self.document.dereference(&entry[1]).unwrap().1;
        let Some(number) = number else { return entry[1].as_reference().unwrap() };
        elements.as_array().unwrap()[usize::try_from(number).unwrap()].as_reference().unwrap()
    }
}

fn decoded(document: &Document, font: ObjectId, shown: &Object) -> String {
    let mut font = document.get_dictionary(font).unwrap().clone();
    font.remove(b"Encoding");
    let encoding: Encoding<'_> = font.get_font_encoding(document).unwrap();
    match shown {
        Object::String(glyphs, _) => encoding.bytes_to_string(glyphs).unwrap(),
        Object::Array(parts) => {
            let texts =
                parts.iter().filter_map(|part| Some(encoding.bytes_to_string(part.as_str().ok()?).unwrap()));
            texts.collect()
        }
        _ => panic!("{shown:?}"),
    }
}
