//! The table of the schema: the tree of pages that begins on page 1, and the records in its leaves.

use super::pages::{Damage, Pages};
use std::collections::HashSet;

/// Bytes of all records together; more is no schema that anybody wrote.
const BYTES_MAX: usize = 256 * 1024 * 1024;

/// One table, index, view or trigger.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) table: String,
    pub(super) sql: String,
}

/// Every object of the schema.
pub(super) fn objects(pages: &Pages) -> Result<Vec<Object>, Damage> {
    let first = pages.page(1)?;
    let usable = first.len() - usize::from(first[20]);
    let encoding = Encoding::of(first[59]);
    let mut walk = Walk { pages, usable, encoding, seen: HashSet::new(), bytes: 0, objects: Vec::new() };
    walk.tree(1)?;
    Ok(walk.objects)
}

#[derive(Debug, Clone, Copy)]
enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

impl Encoding {
    fn of(byte: u8) -> Self {
        match byte {
            2 => Self::Utf16Le,
            3 => Self::Utf16Be,
            _ => Self::Utf8,
        }
    }

    fn text(self, bytes: &[u8]) -> String {
        let units = |from: fn([u8; 2]) -> u16| {
            let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| from([pair[0], pair[1]])).collect();
            String::from_utf16_lossy(&units)
        };
        match self {
            Self::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            Self::Utf16Le => units(u16::from_le_bytes),
            Self::Utf16Be => units(u16::from_be_bytes),
        }
    }
}

struct Walk<'pages> {
    pages: &'pages Pages,
    /// Bytes of a page that hold something.
    usable: usize,
    encoding: Encoding,
    /// No page is met twice in a sound tree.
    seen: HashSet<u32>,
    bytes: usize,
    objects: Vec<Object>,
}

impl Walk<'_> {
    fn page(&mut self, number: u32) -> Result<Vec<u8>, Damage> {
        if !self.seen.insert(number) {
            return Err(Damage::Broken);
        }
        self.pages.page(number)
    }

    fn tree(&mut self, root: u32) -> Result<(), Damage> {
        let mut ahead = vec![root];
        while let Some(number) = ahead.pop() {
            let page = self.page(number)?;
            let head = if number == 1 { 100 } else { 0 };
            let cells = usize::from(short(&page, head + 3)?);
            match page.get(head) {
                Some(13) => {
                    for cell in 0..cells {
                        let at = usize::from(short(&page, head + 8 + 2 * cell)?);
                        self.leaf(&page, at)?;
                    }
                }
                Some(5) => {
                    for cell in 0..cells {
                        let at = usize::from(short(&page, head + 12 + 2 * cell)?);
                        ahead.push(long(&page, at)?);
                    }
                    ahead.push(long(&page, head + 8)?);
                }
                _ => return Err(Damage::Broken),
            }
        }
        Ok(())
    }

    /// One cell of a leaf: the record's length, its row id, and as much of it as stays on the page.
    fn leaf(&mut self, page: &[u8], at: usize) -> Result<(), Damage> {
        let mut input = page.get(at..).ok_or(Damage::Broken)?;
        let len = usize::try_from(varint(&mut input)?).map_err(|_| Damage::Broken)?;
        varint(&mut input)?;
        self.bytes = self.bytes.saturating_add(len);
        if self.bytes > BYTES_MAX {
            return Err(Damage::Broken);
        }
        let local = self.local(len)?;
        let mut record = input.get(..local).ok_or(Damage::Broken)?.to_vec();
        if local < len {
            let mut next = long(input, local)?;
            while record.len() < len {
                let page = self.page(next)?;
                next = long(&page, 0)?;
                let take = (len - record.len()).min(self.usable - 4);
                record.extend(page.get(4..4 + take).ok_or(Damage::Broken)?);
            }
        }
        self.objects.push(self.object(&record)?);
        Ok(())
    }

    /// How much of a record of this length stays on the page, by the rule of the file format.
    fn local(&self, len: usize) -> Result<usize, Damage> {
        let usable = self.usable;
        if usable < 480 {
            return Err(Damage::Broken);
        }
        let most = usable - 35;
        if len <= most {
            return Ok(len);
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let fitting = least + (len - least) % (usable - 4);
        Ok(if fitting <= most { fitting } else { least })
    }

    /// The columns type, name, `tbl_name`, rootpage and sql.
    fn object(&self, record: &[u8]) -> Result<Object, Damage> {
        let mut input = record;
        let header_len = usize::try_from(varint(&mut input)?).map_err(|_| Damage::Broken)?;
        let kinds_len = header_len.checked_sub(record.len() - input.len()).ok_or(Damage::Broken)?;
        let mut kinds = input.get(..kinds_len).ok_or(Damage::Broken)?;
        let mut body = record.get(header_len..).ok_or(Damage::Broken)?;
        let mut columns: [String; 5] = Default::default();
        for column in &mut columns {
            let kind = varint(&mut kinds)?;
            let bytes = body.get(..width(kind)?).ok_or(Damage::Broken)?;
            body = &body[bytes.len()..];
            if kind >= 13 && kind % 2 == 1 {
                *column = self.encoding.text(bytes);
            }
        }
        let [kind, name, table, _, sql] = columns;
        Ok(Object { kind, name, table, sql })
    }
}

/// Bytes of a value of this kind.
fn width(kind: u64) -> Result<usize, Damage> {
    match kind {
        0 | 8 | 9 => Ok(0),
        1..=4 => Ok(kind as usize),
        5 => Ok(6),
        6 | 7 => Ok(8),
        10 | 11 => Err(Damage::Broken),
        text_or_blob => usize::try_from((text_or_blob - 12) / 2).map_err(|_| Damage::Broken),
    }
}

fn varint(input: &mut &[u8]) -> Result<u64, Damage> {
    let mut value = 0;
    for number in 0..9 {
        let (&byte, rest) = input.split_first().ok_or(Damage::Broken)?;
        *input = rest;
        if number == 8 {
            return Ok(value << 8 | u64::from(byte));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Ok(value)
}

fn short(page: &[u8], at: usize) -> Result<u16, Damage> {
    let two = page.get(at..at + 2).ok_or(Damage::Broken)?;
    Ok(u16::from_be_bytes([two[0], two[1]]))
}

fn long(page: &[u8], at: usize) -> Result<u32, Damage> {
    let four = page.get(at..at + 4).ok_or(Damage::Broken)?;
    Ok(u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}
