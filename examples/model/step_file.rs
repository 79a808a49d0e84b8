//! STEP text (ISO 10303-21): records numbered in turn, escaped strings, reals with their point, GlobalIds.

use std::fmt::{self, Display, Formatter, Write as _};
use std::io::{self, Write};

use sha2::{Digest, Sha256};

/// A record's number, written `#12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

impl Display for Id {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A list of references: `(#1,#2)`.
pub struct Refs<'a>(pub &'a [Id]);

impl Display for Refs<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, id) in self.0.iter().enumerate() {
            write!(f, "{}{id}", if i == 0 { '(' } else { ',' })?;
        }
        f.write_char(')')
    }
}

/// A value that may be absent: `$`.
pub struct Maybe<T>(pub Option<T>);

impl<T: Display> Display for Maybe<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_char('$'),
        }
    }
}

/// A real number, rounded to six decimals, always with a point: `4000.`.
pub struct Real(pub f64);

impl Display for Real {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rounded = (self.0 * 1e6).round() / 1e6 + 0.0; // + 0.0 turns -0 into 0
        let whole = rounded.fract() == 0.0;
        write!(f, "{rounded}{}", if whole { "." } else { "" })
    }
}

/// An enumeration value (`.FLOOR.`), absent (`$`) where the name is empty.
pub struct Choice<'a>(pub &'a str);

impl Display for Choice<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_char('$')
        } else {
            write!(f, ".{}.", self.0)
        }
    }
}

/// A string: quotes and backslashes doubled, what is not ASCII as `\X2\...\X0\` (UTF-16, basic plane).
pub struct Text<'a>(pub &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('\'')?;
        let mut escaped = false;
        for c in self.0.chars() {
            let plain = (' '..='~').contains(&c);
            if plain == escaped {
                f.write_str(if plain { "\\X0\\" } else { "\\X2\\" })?;
                escaped = !plain;
            }
            match c {
                '\'' => f.write_str("''")?,
                '\\' => f.write_str("\\\\")?,
                _ if plain => f.write_char(c)?,
                _ => write!(f, "{:04X}", u32::from(c))?,
            }
        }
        f.write_str(if escaped { "\\X0\\'" } else { "'" })
    }
}

/// Sixteen bytes that depend on nothing but the seed, the topic and the numbers: the generator's only chance.
fn drawn(seed: u64, topic: &str, numbers: &[u64]) -> u128 {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(topic.as_bytes());
    for number in numbers {
        hash.update(number.to_le_bytes());
    }
    hash.finalize()
        .iter()
        .take(16)
        .fold(0, |value, byte| value << 8 | u128::from(*byte))
}

/// A number that looks random and never changes.
pub fn draw(seed: u64, topic: &str, numbers: &[u64]) -> u64 {
    drawn(seed, topic, numbers) as u64
}

/// A GlobalId: 128 bits as 22 characters of the IFC alphabet, the first of which holds two bits.
pub fn global_id(seed: u64, topic: &str, numbers: &[u64]) -> String {
    const ALPHABET: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$";
    let bits = drawn(seed, topic, numbers);
    (0..22)
        .rev()
        .map(|place| char::from(ALPHABET[(bits >> (6 * place) & 63) as usize]))
        .collect()
}

/// Writes records one after another and numbers them.
pub struct StepFile<'a> {
    out: &'a mut dyn Write,
    last: u64,
    line: String,
}

impl<'a> StepFile<'a> {
    /// Writes the header; the first record gets the number after `last`.
    pub fn begin(out: &'a mut dyn Write, name: &str, stamp: &str, last: u64) -> io::Result<Self> {
        write!(
            out,
            "ISO-10303-21;\nHEADER;\n\
             FILE_DESCRIPTION(('ViewDefinition [DesignTransferView_V1.0]'),'2;1');\n\
             FILE_NAME({},'{stamp}',('M. Muster'),({}),'sample generator','sample generator','');\n\
             FILE_SCHEMA(('IFC4'));\nENDSEC;\nDATA;\n",
            Text(name),
            Text("Architekturbüro Muster"),
        )?;
        Ok(Self {
            out,
            last,
            line: String::new(),
        })
    }

    /// Writes one record, given as `IFCWALL(...)`.
    pub fn record(&mut self, body: fmt::Arguments<'_>) -> io::Result<Id> {
        self.last += 1;
        self.line.clear();
        // Writing into a String cannot fail.
        let _ = writeln!(self.line, "#{}={body};", self.last);
        self.out.write_all(self.line.as_bytes())?;
        Ok(Id(self.last))
    }

    /// Closes the file and says how many records it has up to the last number.
    pub fn end(self) -> io::Result<u64> {
        self.out.write_all(b"ENDSEC;\nEND-ISO-10303-21;\n")?;
        self.out.flush()?;
        Ok(self.last)
    }
}
