//! The types that describe the keys of the language. The reader and the published schemas use them.

/// The kind of value that a key takes.
#[derive(Debug, Clone, Copy)]
pub enum ValueKind {
    /// A string that may hold `{{ }}`.
    Text,
    /// A string without templates.
    Plain,
    /// One of these words.
    Choice(&'static [&'static str]),
    Name,
    /// A path, which may hold `{{ }}` and `*`, or begin with `project:`.
    Path,
    /// A path in the workspace, to write.
    Place,
    /// The name of a file in the workspace.
    FileName,
    /// A folder, or `project:` and a folder.
    Folder,
    /// A file of the project.
    File,
    /// A file of the project, or false.
    FileOrFalse,
    /// A jq program, or a file of the project that ends in `.jq`.
    Jq,
    /// A plain path of names, `.a.b[].c`.
    Select,
    /// A number with a unit, or a template.
    Duration,
    /// A number of bytes with a unit.
    Size,
    /// An integer of at least 1, or a template.
    Count,
    /// An integer of at least 1.
    Integer,
    /// A number of at least 0.
    Number,
    /// An integer of at least 0, or a share from 0.0 to 1.0.
    CountOrShare,
    /// True or false.
    Bool,
    True,
    /// A count, or a table of one name and a count.
    Concurrency,
    /// A list of strings, or one string.
    Command,
    /// A list of strings.
    Names,
    /// A list of anything.
    Values,
    Any,
    /// A number, which may be below 0.
    AnyNumber,
    /// A table of these keys.
    Table(&'static TableSpec),
    /// A table of names, each a table of these keys (or its short form).
    Named(&'static TableSpec),
    /// A table of names, each a string.
    Strings,
    /// A table of one name and a jq program, inline or in a file.
    Items,
    /// A table of names, each anything.
    Free,
    /// A table of the columns of a table, each a type of cells.
    Columns,
    /// A table of outcomes, each a string.
    Outcomes,
    /// A table of names, each a parameter.
    Params,
    /// One table of these keys, or a list of such.
    OneOrMany(&'static TableSpec),
    /// A list of tables of these keys.
    Many(&'static TableSpec),
}

/// The condition under which a key must or may be in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It may be left out.
    Optional,
    /// It must be there.
    Required,
    /// Exactly one of the keys with this mark is there: it says what the thing is.
    What,
    /// Allowed beside these keys only.
    Beside(&'static [&'static str]),
    /// Required beside this key, and not allowed beside others.
    RequiredBeside(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub struct KeySpec {
    pub name: &'static str,
    pub kind: ValueKind,
    /// When it is required or allowed.
    pub(crate) need: Need,
    pub(crate) default: &'static str,
    /// The description for editors and docs.
    pub(crate) doc: &'static str,
}

/// A table of the language.
#[derive(Debug)]
pub struct TableSpec {
    /// The noun for one such table.
    pub(crate) what: &'static str,
    /// The header: `[step]`; for tables of names, with `NAME` in it; empty for the top of a file.
    pub(crate) header: &'static str,
    pub(crate) keys: &'static [KeySpec],
    /// The key that a plain string stands for.
    pub(crate) short: Option<&'static str>,
}

impl TableSpec {
    /// Returns the key of this name.
    pub(crate) fn key(&self, name: &str) -> Option<&'static KeySpec> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Returns the keys that define the kind of the table; it must have exactly one of them.
    pub(crate) fn whats(&self) -> impl Iterator<Item = &'static str> {
        self.keys
            .iter()
            .filter(|key| key.need == Need::What)
            .map(|key| key.name)
    }
}

/// Returns a key that may be left out.
pub(crate) const fn key(name: &'static str, kind: ValueKind) -> KeySpec {
    KeySpec {
        name,
        kind,
        need: Need::Optional,
        default: "",
        doc: "",
    }
}

impl KeySpec {
    pub(crate) const fn required(self) -> Self {
        self.needed(Need::Required)
    }

    pub(crate) const fn what(self) -> Self {
        self.needed(Need::What)
    }

    pub(crate) const fn beside(self, keys: &'static [&'static str]) -> Self {
        self.needed(Need::Beside(keys))
    }

    pub(crate) const fn required_beside(self, key: &'static str) -> Self {
        self.needed(Need::RequiredBeside(key))
    }

    pub(crate) const fn default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    pub(crate) const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }

    const fn needed(self, need: Need) -> Self {
        Self { need, ..self }
    }
}
