//! The names that programs, templates and plain paths of a stage see, and their values, loaded when they are needed.
//!
//! A name is a value, a file, the files of a glob, or absent (null). A file is read and parsed once, however many
//! expressions use it, and a plain path reads it as a stream without loading it. A dotted name such as `batch.data` is a
//! member of another name that is loaded only when it is mentioned.

mod append;
mod columns;
mod content;
mod program;
mod quotes;
mod separator;
mod source;
mod table;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::{Map, Value};

pub use append::append_rows;
pub(crate) use columns::{CellType, Column, Columns};
pub use content::{Format, Reading, lines, parse};
pub use source::ScopeError;
pub use table::{header, misfits};

use super::jq::Jq;
use super::mentions::Mentions;
use super::place::nearest;
use super::select::{PathStep, ReadError, Select, SelectError, fields};
use super::template::Template;
use crate::base::source::Source;

/// The names of a stage or a batch with their values. A clone is cheap and shares parsed files.
#[derive(Clone, Default)]
pub struct Scope {
    entries: Vec<(String, ScopeEntry)>,
    /// A name that programs see only where they mention it.
    unlisted: Option<String>,
}

#[derive(Clone)]
enum ScopeEntry {
    Value(Arc<LazyValue>),
    File(Arc<ScopeFile>),
    Files(Arc<Vec<ScopeFile>>),
    Absent,
}

/// A value that is made when it is first needed.
type LazyValue = LazyLock<Value, Box<dyn FnOnce() -> Value + Send>>;

struct ScopeFile {
    source: Arc<dyn Source>,
    reading: Reading,
    parsed: OnceLock<Arc<Value>>,
}

impl ScopeFile {
    fn of((source, reading): (Arc<dyn Source>, Reading)) -> Self {
        Self {
            source,
            reading,
            parsed: OnceLock::new(),
        }
    }

    /// Returns an object of these fields of a JSON document, read as a stream: the rest may be larger than memory. `None` if that
    /// needs the whole document.
    fn fields(&self, keys: &BTreeSet<&str>) -> Option<Value> {
        if self.parsed.get().is_some() || self.reading.format != Format::Json || keys.is_empty() {
            return None;
        }
        fields(keys, source::open(&*self.source).ok()?)
    }

    fn value(&self, name: &str) -> Result<Arc<Value>, ScopeError> {
        if let Some(parsed) = self.parsed.get() {
            return Ok(Arc::clone(parsed));
        }
        let parsed = Arc::new(content::parse(name, &*self.source, &self.reading)?);
        Ok(Arc::clone(self.parsed.get_or_init(|| parsed)))
    }
}

impl Scope {
    /// Creates an empty scope.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name with a value, or replaces its value.
    pub fn insert_value(&mut self, name: &str, value: Value) {
        self.insert_lazy(name, move || value);
    }

    /// Adds a name whose value is made when an expression needs it.
    pub fn insert_lazy(&mut self, name: &str, make: impl FnOnce() -> Value + Send + 'static) {
        self.insert(name, ScopeEntry::lazy(make));
    }

    /// Adds a name with a value that a program sees only if it names it.
    pub fn insert_unlisted(&mut self, name: &str, value: Value) {
        self.insert_value(name, value);
        self.unlisted = Some(name.to_owned());
    }

    /// Adds a name, or a member of a name (`batch.data`), whose value is the content of a file.
    pub fn insert_file(
        &mut self,
        name: &str,
        source: Arc<dyn Source>,
        reading: impl Into<Reading>,
    ) {
        let file = ScopeFile::of((source, reading.into()));
        self.insert(name, ScopeEntry::File(Arc::new(file)));
    }

    /// Adds a name whose value is the list of the contents of files.
    pub fn insert_files(&mut self, name: &str, files: Vec<(Arc<dyn Source>, Reading)>) {
        let files = files.into_iter().map(ScopeFile::of).collect();
        self.insert(name, ScopeEntry::Files(Arc::new(files)));
    }

    /// Adds a name that is null: a missing optional input, or the output of a skipped step.
    pub fn absent(&mut self, name: &str) {
        self.insert(name, ScopeEntry::Absent);
    }

    fn insert(&mut self, name: &str, entry: ScopeEntry) {
        self.unlisted.take_if(|unlisted| unlisted == name);
        match self.entries.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = entry,
            None => self.entries.push((name.to_owned(), entry)),
        }
    }

    fn entry(&self, name: &str) -> Option<&ScopeEntry> {
        self.entries
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, entry)| entry)
    }

    /// Returns the names, in the order in which they were inserted: the variables of a program of this stage.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in &self.entries {
            let name = name.split('.').next().unwrap_or(name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the whole value of a name.
    ///
    /// # Errors
    /// If the name is unknown, or its file cannot be read or is binary.
    pub fn value(&self, name: &str) -> Result<Value, ScopeError> {
        self.part(name, None)
    }

    /// Returns an object of the names that exist, each with the members that are needed. Binary files are left out, since an
    /// expression may mention a name without using it.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn value_for(&self, names: &BTreeSet<String>) -> Result<Value, ScopeError> {
        self.object(&names.iter().cloned().collect(), false)
    }

    /// Returns the input of a program whose `.` is the scope, with the names that it uses.
    ///
    /// # Errors
    /// The errors of [`Scope::vars_of`].
    pub fn input_of(&self, jq: &Jq) -> Result<Value, ScopeError> {
        if jq.takes_whole() {
            let unlisted = self.unlisted.as_deref();
            let is_seen = |name: &&str| unlisted != Some(*name) || jq.roots().has(name);
            let all = self.names().into_iter().filter(is_seen).collect();
            return self.object(&all, false);
        }
        self.object(jq.roots(), false)
    }

    /// Returns the values of a program's variables; null for a name that is unknown or that the program does not use.
    ///
    /// # Errors
    /// If a file cannot be read or is binary.
    pub fn vars_of(&self, jq: &Jq) -> Result<Vec<Value>, ScopeError> {
        let mentions = jq.roots();
        let names = jq.vars().iter().enumerate();
        let value = |(at, name): (usize, &String)| {
            if !mentions.has(name) || !self.has(name) || !jq.uses_var(at) {
                return Ok(Value::Null);
            }
            match self.part(name, mentions.keys_of(name).as_ref()) {
                // A program may bind a variable of the same name itself; it then does not read the file.
                Err(ScopeError::Binary { .. }) => Ok(Value::Null),
                other => other,
            }
        };
        names.map(value).collect()
    }

    /// Returns the values that a template uses.
    ///
    /// # Errors
    /// The errors of [`Scope::vars_of`].
    pub fn context_of(&self, template: &Template) -> Result<Value, ScopeError> {
        let mut context = self.object(template.mentions(), true)?;
        // Names that are not needed become null: an error about a wrong name lists them.
        if let Value::Object(map) = &mut context {
            for name in self.names() {
                if !map.contains_key(name) {
                    map.insert(name.to_owned(), Value::Null);
                }
            }
        }
        Ok(context)
    }

    /// Returns true if the name is there.
    pub fn has(&self, name: &str) -> bool {
        self.names().contains(&name)
    }

    /// Returns the files of a name, or of a member such as `batch.data`; `None` if it is not a name of files.
    pub fn sources(&self, name: &str) -> Option<Vec<Arc<dyn Source>>> {
        match self.entry(name)? {
            ScopeEntry::File(file) => Some(vec![Arc::clone(&file.source)]),
            ScopeEntry::Files(files) => {
                Some(files.iter().map(|file| Arc::clone(&file.source)).collect())
            }
            ScopeEntry::Value(_) | ScopeEntry::Absent => None,
        }
    }

    /// Returns the only file of a name; `None` if it is not a single file.
    pub fn source(&self, name: &str) -> Option<Arc<dyn Source>> {
        match self.entry(name)? {
            ScopeEntry::File(file) => Some(Arc::clone(&file.source)),
            _ => None,
        }
    }

    /// Returns true if a name is known and has no value: a missing optional input, or the output of a skipped step.
    pub fn is_absent(&self, name: &str) -> bool {
        matches!(self.entry(name), Some(ScopeEntry::Absent))
    }

    /// Returns the file of a name, and the lines on which its records begin (tables and NDJSON).
    pub fn lines(&self, name: &str) -> Option<(String, Vec<u64>)> {
        let Some(ScopeEntry::File(file)) = self.entry(name) else {
            return None;
        };
        let lines = content::lines(&*file.source, &file.reading).unwrap_or_default();
        Some((file.source.name(), lines))
    }

    /// Returns the columns of a table as its rows have them: as declared, else as in its header. None if the name is not a single
    /// table.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn header(&self, name: &str) -> Result<Option<Vec<String>>, ScopeError> {
        match self.entry(name) {
            Some(ScopeEntry::File(file)) if file.reading.format == Format::Csv => {
                let names = |columns: &Columns| columns.names().map(str::to_owned).collect();
                match &file.reading.columns {
                    Some(columns) => Ok(Some(names(columns))),
                    None => table::header(&*file.source).map(Some),
                }
            }
            _ => Ok(None),
        }
    }

    /// Returns true if the name is a list of files.
    pub fn is_list(&self, name: &str) -> bool {
        matches!(self.entry(name), Some(ScopeEntry::Files(_)))
    }

    /// Returns the names, and members such as `photo.data`, of binary files.
    pub fn binary(&self) -> Vec<&str> {
        let is_binary = |file: &ScopeFile| file.reading.format == Format::Binary;
        let named = self.entries.iter().filter(|(_, entry)| match entry {
            ScopeEntry::File(file) => is_binary(file),
            ScopeEntry::Files(files) => !files.is_empty() && files.iter().all(is_binary),
            ScopeEntry::Value(_) | ScopeEntry::Absent => false,
        });
        named.map(|(name, _)| name.as_str()).collect()
    }

    fn object(&self, mentions: &Mentions, strict: bool) -> Result<Value, ScopeError> {
        let mut map = Map::new();
        for name in self.names() {
            if !mentions.has(name) {
                continue;
            }
            match self.part(name, mentions.keys_of(name).as_ref()) {
                Ok(value) => {
                    map.insert(name.to_owned(), value);
                }
                Err(ScopeError::Binary { .. }) if !strict => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Value::Object(map))
    }

    /// Returns the members of a name, each with its dotted name: all of them, or those in `keys`.
    fn members<'s>(
        &'s self,
        name: &str,
        keys: Option<&BTreeSet<&str>>,
    ) -> impl Iterator<Item = (&'s str, &'s str, &'s ScopeEntry)> {
        self.entries.iter().filter_map(move |(known, entry)| {
            let member = known.strip_prefix(name)?.strip_prefix('.')?;
            keys.is_none_or(|keys| keys.contains(member))
                .then_some((known.as_str(), member, entry))
        })
    }

    /// Returns the value of a name with its members: all of them, or those in `keys`.
    fn part(&self, name: &str, keys: Option<&BTreeSet<&str>>) -> Result<Value, ScopeError> {
        let own = self.entry(name);
        let mut members = self.members(name, keys);
        let mut value = match own {
            Some(ScopeEntry::File(file)) => match keys.and_then(|keys| file.fields(keys)) {
                Some(part) => part,
                None => (*file.value(name)?).clone(),
            },
            Some(entry) => load(name, entry)?,
            None if self.has(name) => Value::Object(Map::new()),
            None => return Err(self.unknown(name)),
        };
        if let Value::Object(map) = &mut value {
            members.try_for_each(|(known, member, entry)| {
                map.insert(member.to_owned(), load(known, entry)?);
                Ok(())
            })?;
        }
        Ok(value)
    }

    fn unknown(&self, name: &str) -> ScopeError {
        let names = self.names();
        ScopeError::Unknown {
            name: name.to_owned(),
            near: nearest(name, names.iter().copied()).map(str::to_owned),
            has: names.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Passes every value that a plain path selects to `each`, and returns their number. The first step is a name of the scope.
    /// JSON, NDJSON and CSV files are read as streams; for the files of a pattern, `.name[]` is each in turn.
    ///
    /// # Errors
    /// If the name is unknown, a file cannot be read or does not fit, and errors of `each`.
    pub fn select<E: From<ScopeError>>(
        &self,
        select: &Select,
        each: &mut dyn FnMut(Value) -> Result<(), E>,
    ) -> Result<u64, E> {
        let name = select.first();
        // A member that is a file of its own comes before the name that it belongs to.
        if let [_, PathStep::Field(member), ..] = select.steps() {
            let dotted = format!("{name}.{member}");
            if let Some(entry) = self.entry(&dotted) {
                return walk(&dotted, entry, &select.rest().rest(), each);
            }
        }
        if let Some(entry @ (ScopeEntry::File(_) | ScopeEntry::Files(_) | ScopeEntry::Absent)) =
            self.entry(name)
        {
            return walk(name, entry, &select.rest(), each);
        }
        let member = match select.steps() {
            [_, PathStep::Field(member), ..] => Some(BTreeSet::from([member.as_str()])),
            _ => None,
        };
        let value = self.part(name, member.as_ref())?;
        walk(name, &ScopeEntry::lazy(move || value), &select.rest(), each)
    }
}

impl ScopeEntry {
    fn lazy(make: impl FnOnce() -> Value + Send + 'static) -> Self {
        Self::Value(Arc::new(LazyLock::new(Box::new(make))))
    }
}

fn load(name: &str, entry: &ScopeEntry) -> Result<Value, ScopeError> {
    match entry {
        ScopeEntry::Value(value) => Ok((**value).clone()),
        ScopeEntry::File(file) => Ok((*file.value(name)?).clone()),
        ScopeEntry::Files(files) => files
            .iter()
            .map(|file| Ok((*file.value(name)?).clone()))
            .collect::<Result<_, _>>()
            .map(Value::Array),
        ScopeEntry::Absent => Ok(Value::Null),
    }
}

fn walk<E: From<ScopeError>>(
    name: &str,
    entry: &ScopeEntry,
    rest: &Select,
    each: &mut dyn FnMut(Value) -> Result<(), E>,
) -> Result<u64, E> {
    let in_memory = |value: &Value, each: &mut dyn FnMut(Value) -> Result<(), E>| {
        rest.select_value(value, &mut |value| each(value.clone()))
            .map_err(|error| unfit(name, error))
    };
    match (entry, rest.steps().first()) {
        (ScopeEntry::Absent, _) => Ok(0),
        (ScopeEntry::Value(value), _) => in_memory(value, each),
        (ScopeEntry::File(file), _) => stream(name, file, rest, each),
        (ScopeEntry::Files(files), Some(PathStep::Each)) => {
            let rest = rest.rest();
            files.iter().try_fold(
                0,
                |count, file| Ok(count + stream(name, file, &rest, each)?),
            )
        }
        (ScopeEntry::Files(_), _) => in_memory(&load(name, entry)?, each),
    }
}

fn stream<E: From<ScopeError>>(
    name: &str,
    file: &ScopeFile,
    select: &Select,
    each: &mut dyn FnMut(Value) -> Result<(), E>,
) -> Result<u64, E> {
    let shown = file.source.name();
    if file.parsed.get().is_none() {
        if file.reading.format == Format::Json {
            let reader = source::open(&*file.source)?;
            return select
                .read(reader, each)
                .map_err(|error| unfit(&shown, error));
        }
        if let (Format::Ndjson | Format::Csv, Some(PathStep::Each)) =
            (file.reading.format, select.steps().first())
        {
            let rest = select.rest();
            let mut count = 0;
            content::records(&*file.source, &file.reading, &mut |at, record| {
                if rest.steps().is_empty() {
                    count += 1;
                    return each(record);
                }
                let selected = rest.select_value(&record, &mut |value| each(value.clone()));
                count +=
                    selected.map_err(|error| unfit(&format!("{shown}: record {at}"), error))?;
                Ok(())
            })?;
            return Ok(count);
        }
    }
    let value = file.value(name)?;
    select
        .select_value(&value, &mut |value| each(value.clone()))
        .map_err(|error| unfit(&shown, error))
}

fn unfit<E: From<ScopeError>>(file: &str, error: ReadError<E>) -> E {
    match error {
        ReadError::Each(error) => error,
        ReadError::Select(SelectError::Io(message)) => ScopeError::Read {
            file: file.to_owned(),
            message,
        }
        .into(),
        ReadError::Select(error) => ScopeError::Unfit {
            file: file.to_owned(),
            error: Box::new(error),
        }
        .into(),
    }
}

#[cfg(test)]
#[path = "scope/tests.rs"]
mod tests;
