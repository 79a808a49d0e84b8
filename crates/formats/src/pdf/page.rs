//! Pages of drawn items to the bytes of a PDF file, with fonts, outline and structure.

use std::io::Write;

use flate2::{Compression, write::ZlibEncoder};
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Date, Filter, Finish, Name, Pdf, Rect, Ref, Settings, Str, TextStr};
use sha2::{Digest, Sha256};

use super::drawing::{self, Paths};
use super::font::{Face, Fonts, Glyph};
use super::info::{PdfError, PdfInfo};
use super::tags::{Tag, Tags};

/// A4 in points (ISO 216: 210 × 297 mm).
pub(crate) const PAPER: (f32, f32) = (595.28, 841.89);

/// Red, green and blue, 0 to 255.
pub(crate) type Color = [u8; 3];

/// Drawing operations. Positions are in points from the upper left corner of the page; `y` of a text
/// is its baseline, of a box its upper edge.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Text {
        x: f32,
        y: f32,
        size: f32,
        color: Color,
        glyphs: Vec<Glyph>,
    },
    Fill {
        x: f32,
        y: f32,
        width: f32,
        height: f32,
        color: Color,
    },
    Paths(Paths),
}

/// A shape, and the part of the structure that it belongs to; none for decoration.
#[derive(Debug, Clone)]
pub(crate) struct DrawnItem {
    pub(crate) shape: Shape,
    pub(crate) tag: Option<Tag>,
}

/// The items of a page in the order of drawing.
#[derive(Debug, Clone, Default)]
pub(crate) struct DrawnPage {
    pub(crate) items: Vec<DrawnItem>,
}

/// A heading for the outline: its text and its place.
#[derive(Debug, Clone)]
pub(crate) struct OutlineEntry {
    pub(crate) level: u8,
    pub(crate) text: String,
    pub(crate) page: usize,
    pub(crate) y: f32,
}

/// A laid out document.
pub(crate) struct Document {
    pub(crate) pages: Vec<DrawnPage>,
    pub(crate) outline: Vec<OutlineEntry>,
    pub(crate) tags: Tags,
}

/// Hands out object numbers.
struct Numbers(i32);

impl Numbers {
    fn next(&mut self) -> Ref {
        self.0 += 1;
        Ref::new(self.0)
    }
}

/// Writes the file. The same document and information produce the same bytes.
pub(crate) fn write(
    mut document: Document,
    fonts: &mut Fonts,
    info: &PdfInfo,
) -> Result<Vec<u8>, PdfError> {
    let mut numbers = Numbers(0);
    let catalog = numbers.next();
    let about = numbers.next();
    let tree = numbers.next();
    let structure = numbers.next();
    let pages: Vec<Ref> = document.pages.iter().map(|_| numbers.next()).collect();
    let faces: Vec<Ref> = fonts.faces.iter().map(|_| numbers.next()).collect();

    let mut pdf = Pdf::with_settings(Settings { pretty: false });
    let mut digest = Sha256::new();
    let mut marked = Vec::with_capacity(pages.len());
    let mut contents = Vec::with_capacity(pages.len());
    for (number, page) in document.pages.iter().enumerate() {
        let (content, tags) = draw(page, number, fonts, &mut document.tags);
        digest.update(&content);
        contents.push(content);
        marked.push(tags);
    }
    let used: Vec<bool> = fonts.faces.iter().map(|f| !f.signs.is_empty()).collect();

    for (number, content) in contents.iter().enumerate() {
        let stream = numbers.next();
        let mut page = pdf.page(pages[number]);
        page.parent(tree);
        page.media_box(Rect::new(0.0, 0.0, PAPER.0, PAPER.1));
        page.contents(stream);
        page.struct_parents(number as i32);
        page.tab_order(pdf_writer::types::TabOrder::StructureOrder);
        let mut resources = page.resources();
        let mut dict = resources.fonts();
        for (face, id) in faces.iter().enumerate().filter(|(face, _)| used[*face]) {
            dict.pair(Name(label(face).as_bytes()), *id);
        }
        dict.finish();
        resources.finish();
        page.finish();
        let packed = pack(content)?;
        pdf.stream(stream, &packed).filter(Filter::FlateDecode);
    }
    pdf.pages(tree)
        .kids(pages.iter().copied())
        .count(pages.len() as i32);

    for (face, id) in fonts.faces.iter().zip(&faces) {
        if !face.signs.is_empty() {
            embed(&mut pdf, face, *id, &mut numbers)?;
        }
    }

    // The structure takes all the numbers from here on.
    let outline = outline(&mut pdf, &document.outline, &pages, &mut numbers);
    let first = numbers.0 + 1;
    document
        .tags
        .write(&mut pdf, structure, first, &pages, &marked);

    let mut root = pdf.catalog(catalog);
    root.pages(tree);
    root.lang(TextStr(&info.language));
    root.mark_info().marked(true);
    root.pair(Name(b"StructTreeRoot"), structure);
    root.viewer_preferences().display_doc_title(true);
    if let Some(outline) = outline {
        root.outlines(outline);
    }
    root.finish();

    let mut dict = pdf.document_info(about);
    dict.title(TextStr(&info.title));
    dict.producer(TextStr(&info.producer));
    digest.update(info.title.as_bytes());
    if let Some(date) = info.date {
        let year = u16::try_from(date.year()).unwrap_or(0);
        let date = Date::new(year)
            .month(date.month() as u8)
            .day(date.day() as u8);
        dict.creation_date(date);
        dict.modified_date(date);
    }
    dict.finish();
    let id = digest.finalize()[..16].to_vec();
    pdf.set_file_id((id.clone(), id));
    Ok(pdf.finish())
}

fn label(face: usize) -> String {
    format!("F{face}")
}

/// Draws a page; returns its content and the structure of its marked contents.
fn draw(
    page: &DrawnPage,
    number: usize,
    fonts: &mut Fonts,
    tags: &mut Tags,
) -> (Vec<u8>, Vec<Tag>) {
    let mut content = Content::new();
    let mut marked: Vec<Tag> = Vec::new();
    let mut open: Option<Option<Tag>> = None;
    for item in &page.items {
        if open != Some(item.tag) {
            if open.is_some() {
                content.end_marked_content();
            }
            match item.tag {
                Some(tag) => {
                    let id = marked.len() as i32;
                    tags.mark(tag, number, id);
                    marked.push(tag);
                    content
                        .begin_marked_content_with_properties(tags.role(tag).to_name())
                        .properties()
                        .identify(id);
                }
                None => {
                    content.begin_marked_content(Name(b"Artifact"));
                }
            }
            open = Some(item.tag);
        }
        match &item.shape {
            Shape::Fill {
                x,
                y,
                width,
                height,
                color,
            } => {
                let [r, g, b] = rgb(*color);
                content.set_fill_rgb(r, g, b);
                content.rect(*x, PAPER.1 - y - height, *width, *height);
                content.fill_nonzero();
            }
            Shape::Text {
                x,
                y,
                size,
                color,
                glyphs,
            } => text(&mut content, (*x, *y), *size, *color, glyphs, fonts),
            Shape::Paths(paths) => drawing::write(&mut content, paths),
        }
    }
    if open.is_some() {
        content.end_marked_content();
    }
    (content.finish().to_vec(), marked)
}

/// One text object; a run for each stretch of glyphs of one face.
fn text(
    content: &mut Content,
    at: (f32, f32),
    size: f32,
    color: Color,
    glyphs: &[Glyph],
    fonts: &mut Fonts,
) {
    let [r, g, b] = rgb(color);
    content.set_fill_rgb(r, g, b);
    content.begin_text();
    content.next_line(at.0, PAPER.1 - at.1);
    for run in glyphs.chunk_by(|a, b| a.face == b.face) {
        let mut bytes = Vec::with_capacity(run.len() * 2);
        for glyph in run {
            bytes.extend(fonts.embed(*glyph).to_be_bytes());
        }
        if let Some(first) = run.first() {
            let name = label(first.face as usize);
            content.set_font(Name(name.as_bytes()), size * first.face.scale());
            content.show(Str(&bytes));
        }
    }
    content.end_text();
}

pub(crate) fn rgb(color: Color) -> [f32; 3] {
    // Three decimals are more than eight bits need, and keep the file short.
    color.map(|c| (f32::from(c) / 255.0 * 1000.0).round() / 1000.0)
}

fn pack(bytes: &[u8]) -> Result<Vec<u8>, PdfError> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .map_err(PdfError::Compress)
}

/// A face as a composite font with the glyphs that are used (ISO 32000-1, 9.7).
fn embed(pdf: &mut Pdf, face: &Face, id: Ref, numbers: &mut Numbers) -> Result<(), PdfError> {
    let (cid, descriptor, file, unicode) = (
        numbers.next(),
        numbers.next(),
        numbers.next(),
        numbers.next(),
    );
    let bad = |reason: String| PdfError::Font {
        name: face.name,
        reason,
    };
    let subset = subsetter::subset(face.data, 0, &face.used).map_err(|e| bad(e.to_string()))?;
    // Six letters name the subset; the face's own place keeps them apart within a file.
    let name = format!("{}+{}", "MLPSTA", face.name);
    let system = SystemInfo {
        registry: Str(b"Adobe"),
        ordering: Str(b"Identity"),
        supplement: 0,
    };
    let scale = 1000.0 / f32::from(face.parsed.units_per_em);

    pdf.type0_font(id)
        .base_font(Name(name.as_bytes()))
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(cid)
        .to_unicode(unicode);
    let mut font = pdf.cid_font(cid);
    font.subtype(CidFontType::Type2)
        .base_font(Name(name.as_bytes()))
        .system_info(system)
        .font_descriptor(descriptor)
        .default_width(0.0)
        .cid_to_gid_map_predefined(Name(b"Identity"));
    font.widths().consecutive(
        0,
        face.used
            .remapped_gids()
            .map(|old| (f32::from(face.parsed.advance(old)) * scale * 100.0).round() / 100.0),
    );
    font.finish();

    let mut flags = FontFlags::SYMBOLIC;
    if face.parsed.monospaced {
        flags |= FontFlags::FIXED_PITCH;
    }
    if face.parsed.italic {
        flags |= FontFlags::ITALIC;
    }
    let [left, bottom, right, top] = face.parsed.bounds;
    pdf.font_descriptor(descriptor)
        .name(Name(name.as_bytes()))
        .flags(flags)
        .bbox(Rect::new(
            f32::from(left) * scale,
            f32::from(bottom) * scale,
            f32::from(right) * scale,
            f32::from(top) * scale,
        ))
        .italic_angle(face.parsed.italic_angle)
        .ascent(f32::from(face.parsed.ascender) * scale)
        .descent(f32::from(face.parsed.descender) * scale)
        .cap_height(f32::from(face.parsed.cap_height) * scale)
        .stem_v(if face.parsed.bold { 140.0 } else { 80.0 })
        .font_file2(file);
    let packed = pack(&subset)?;
    let mut stream = pdf.stream(file, &packed);
    stream.filter(Filter::FlateDecode);
    stream.pair(Name(b"Length1"), subset.len() as i32);
    stream.finish();

    let mut map = UnicodeCmap::new(Name(b"Milepost"), system);
    for (&glyph, &sign) in &face.signs {
        map.pair(glyph, sign);
    }
    let map = map.finish();
    let packed = pack(map.as_slice())?;
    pdf.cmap(unicode, &packed).filter(Filter::FlateDecode);
    Ok(())
}

/// Headings of the first two levels as a flat list of bookmarks.
fn outline(
    pdf: &mut Pdf,
    entries: &[OutlineEntry],
    pages: &[Ref],
    numbers: &mut Numbers,
) -> Option<Ref> {
    let shown: Vec<(&OutlineEntry, Ref)> = entries
        .iter()
        .filter(|e| e.level <= 2)
        .map(|e| (e, numbers.next()))
        .collect();
    let (first, last) = (shown.first()?.1, shown.last()?.1);
    let root = numbers.next();
    pdf.outline(root)
        .first(first)
        .last(last)
        .count(shown.len() as i32);
    for (place, (entry, id)) in shown.iter().enumerate() {
        let mut item = pdf.outline_item(*id);
        item.title(TextStr(&entry.text)).parent(root);
        if place > 0 {
            item.prev(shown[place - 1].1);
        }
        if let Some((_, next)) = shown.get(place + 1) {
            item.next(*next);
        }
        if let Some(&page) = pages.get(entry.page) {
            item.dest().page(page).xyz(0.0, PAPER.1 - entry.y, None);
        }
    }
    Some(root)
}
