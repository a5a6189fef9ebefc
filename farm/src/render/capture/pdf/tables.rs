//! The tables of the structure tree as PDF/UA-1 asks for them (ISO 14289-1, 7.5).

use lopdf::{Dictionary, Document, Object, ObjectId};

use super::struct_tree::{kids, kind};
use crate::error::JobError;

/// Refuses a table in which something is no cell, or whose rows have different numbers of columns.
pub(super) fn check(document: &Document, table: ObjectId) -> Result<(), JobError> {
    let mut rows = Vec::new();
    for (id, kind) in elements(document, table)? {
        match kind {
            b"TR" => rows.push(id),
            b"THead" | b"TBody" | b"TFoot" => {
                let group = elements(document, id)?;
                if group.iter().any(|(_, kind)| *kind != b"TR") {
                    return Err(JobError::standard_not_met(ONLY_CELLS));
                }
                rows.extend(group.into_iter().map(|(id, _)| id));
            }
            b"Caption" => {}
            _ => return Err(JobError::standard_not_met(ONLY_CELLS)),
        }
    }
    // For each column the rows that its last cell still covers.
    let mut covered: Vec<i64> = Vec::new();
    for (index, row) in rows.into_iter().enumerate() {
        let mut column = 0;
        for (cell, kind) in elements(document, row)? {
            if !matches!(kind, b"TH" | b"TD") {
                return Err(JobError::standard_not_met(ONLY_CELLS));
            }
            let cell = document.get_dictionary(cell)?;
            let rows = span(cell, b"RowSpan");
            for _ in 0..span(cell, b"ColSpan") {
                while covered.get(column).is_some_and(|rows| *rows > 0) {
                    column += 1;
                }
                match covered.get_mut(column) {
                    Some(covered) => *covered = rows,
                    None if index == 0 => covered.push(rows),
                    None => return Err(JobError::standard_not_met(SAME_COLUMNS)),
                }
            }
        }
        if covered.contains(&0) {
            return Err(JobError::standard_not_met(SAME_COLUMNS));
        }
        for rows in &mut covered {
            *rows -= 1;
        }
    }
    if covered.iter().any(|rows| *rows > 0) { Err(JobError::standard_not_met(SAME_COLUMNS)) } else { Ok(()) }
}

const ONLY_CELLS: &str = "a table has only rows, and a row only cells";
const SAME_COLUMNS: &str = "all rows of a table have cells for the same number of columns";

/// The elements in another one, with their types.
fn elements(document: &Document, parent: ObjectId) -> lopdf::Result<Vec<(ObjectId, &[u8])>> {
    let kids = kids(document, document.get_dictionary(parent)?);
    Ok(kids.iter().filter_map(|kid| Some((kid.as_reference().ok()?, kind(document, kid)?))).collect())
}

/// The rows or columns of a cell.
fn span(cell: &Dictionary, key: &[u8]) -> i64 {
    let attributes = cell.get(b"A").and_then(Object::as_array).map_or(&[][..], Vec::as_slice);
    let mut spans =
        attributes.iter().filter_map(|it| it.as_dict().ok()?.get(key).and_then(Object::as_i64).ok());
    spans.next_back().unwrap_or(1).max(1)
}
