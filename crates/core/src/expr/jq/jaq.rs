//! Programs that jaq compiles and runs.

use std::sync::Arc;

use jaq_core::load::parse::{Def, Term};
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Filter, Vars};
use jaq_json::Val;
use jaq_std::input::RcIter;

use super::data::{Data, RunData};
use super::fault::{JqError, ProgramText};
use super::library;

/// A compiled filter of jaq.
#[derive(Clone)]
pub(crate) struct JaqFilter {
    name: String,
    filter: Arc<Filter<Data>>,
}

/// The name under which a program is compiled.
const MAIN: &str = "milepost_program";

impl std::fmt::Debug for JaqFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl JaqFilter {
    /// Compiles the term that a program is.
    ///
    /// # Errors
    /// Unknown names.
    pub(crate) fn compile(program: &ProgramText<'_>, term: Term<&str>) -> Result<Self, JqError> {
        let (source, vars) = (program.source, program.vars);
        // A program that calls itself would never end.
        if source.contains(MAIN) {
            return Err(program.fault(
                source,
                "`milepost_program` is a name of Milepost's own",
                None,
            ));
        }
        let globals: Vec<String> = vars.iter().map(|var| format!("${var}")).collect();
        // jaq compiles no term of others, except as a definition.
        let main = Def {
            name: MAIN,
            args: Vec::new(),
            body: term,
        };
        let file = File {
            code: main.name,
            path: (),
        };
        let arena = Arena::default();
        let modules = Loader::new(library::defs().into_iter().chain([main]))
            .load(&arena, file)
            .map_err(|_| program.fault(source, "the program cannot be read", None))?;
        Compiler::default()
            .with_funs(library::funs())
            .with_global_vars(globals.iter().map(String::as_str))
            .compile(modules)
            .map(|filter| Self {
                name: program.program.to_owned(),
                filter: Arc::new(filter),
            })
            .map_err(|errors| {
                errors
                    .first()
                    .and_then(|(_, undefined)| undefined.first())
                    .map_or_else(
                        || program.fault(source, "the program cannot be compiled", None),
                        |(name, what)| program.undefined(name, what),
                    )
            })
    }

    /// Returns the name of the program or of the called filter.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs the program and passes each output to `give`, until `give` returns an error.
    pub(crate) fn run<E>(
        &self,
        vars: Vec<Val>,
        input: Val,
        inputs: &mut dyn Iterator<Item = Result<Val, String>>,
        give: &mut dyn FnMut(Result<Val, jaq_core::Error<Val>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let inputs = RcIter::new(inputs);
        let running = RunData {
            lut: &self.filter.lut,
            inputs: &inputs,
        };
        let ctx = Ctx::<Data>::new(running, Vars::new(vars));
        for output in self.filter.id.run((ctx, input)) {
            let ended = || jaq_core::Error::str("it ended without a value");
            give(output.map_err(|exception| exception.get_err().unwrap_or_else(|_| ended())))?;
        }
        Ok(())
    }
}
