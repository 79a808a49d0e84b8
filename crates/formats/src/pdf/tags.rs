//! The logical structure of a PDF report: what is a heading, a table, a cell (tagged PDF).

use pdf_writer::types::{StructRole, TableHeaderScope};
use pdf_writer::{Pdf, Ref};

/// A node of the structure tree, by its place in [`Tags`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tag(usize);

/// The whole document.
pub(crate) const DOCUMENT: Tag = Tag(0);

struct TagNode {
    role: StructRole,
    parent: Option<usize>,
    alt: Option<String>,
    kids: Vec<usize>,
    /// Page and number of the marked content on it.
    content: Vec<(usize, i32)>,
}

/// The structure tree while it grows.
pub(crate) struct Tags {
    nodes: Vec<TagNode>,
}

impl Default for Tags {
    fn default() -> Self {
        Self {
            nodes: vec![TagNode {
                role: StructRole::Document,
                parent: None,
                alt: None,
                kids: Vec::new(),
                content: Vec::new(),
            }],
        }
    }
}

impl Tags {
    /// Adds a node below another.
    pub(crate) fn add(&mut self, parent: Tag, role: StructRole) -> Tag {
        let id = self.nodes.len();
        self.nodes.push(TagNode {
            role,
            parent: Some(parent.0),
            alt: None,
            kids: Vec::new(),
            content: Vec::new(),
        });
        self.nodes[parent.0].kids.push(id);
        Tag(id)
    }

    /// Says in words what a node shows.
    pub(crate) fn describe(&mut self, tag: Tag, words: String) {
        self.nodes[tag.0].alt = Some(words);
    }

    /// Returns the name of the node's role, as marked content names it.
    pub(crate) fn role(&self, tag: Tag) -> StructRole {
        self.nodes[tag.0].role
    }

    /// Notes that the marked content `number` of `page` belongs to the node.
    pub(crate) fn mark(&mut self, tag: Tag, page: usize, number: i32) {
        self.nodes[tag.0].content.push((page, number));
    }

    /// Writes the tree, with one object a node from `first` on. `root` is the tree's own object;
    /// `marked` says for each page the nodes of its marked contents, in their order.
    pub(crate) fn write(
        &self,
        pdf: &mut Pdf,
        root: Ref,
        first: i32,
        pages: &[Ref],
        marked: &[Vec<Tag>],
    ) {
        let object = |node: usize| Ref::new(first + node as i32);
        {
            let mut tree = pdf
                .indirect(root)
                .start::<pdf_writer::writers::StructTreeRoot>();
            tree.child(object(0));
            let mut parents = tree.parent_tree();
            let mut nums = parents.nums();
            for (page, _) in marked.iter().enumerate() {
                nums.insert(
                    page as i32,
                    Ref::new(first + (self.nodes.len() + page) as i32),
                );
            }
        }
        for (number, node) in self.nodes.iter().enumerate() {
            let mut element = pdf.struct_element(object(number));
            element.kind(node.role);
            element.parent(node.parent.map_or(root, object));
            if let Some(words) = &node.alt {
                element.alt(pdf_writer::TextStr(words));
            }
            if node.role == StructRole::TH {
                element
                    .attributes()
                    .push()
                    .table()
                    .scope(TableHeaderScope::Column);
            }
            let mut children = element.children();
            for &(page, marked) in &node.content {
                if let Some(&page) = pages.get(page) {
                    children
                        .marked_content_ref()
                        .page(page)
                        .marked_content_id(marked);
                }
            }
            for &kid in &node.kids {
                children.struct_element(object(kid));
            }
        }
        for (page, tags) in marked.iter().enumerate() {
            pdf.indirect(Ref::new(first + (self.nodes.len() + page) as i32))
                .array()
                .items(tags.iter().map(|tag| object(tag.0)));
        }
    }
}
