//! What holds the records together: parts, containers, materials, classifications.

use std::io;

use super::records::{CHUNK, Model};
use super::step_file::{Id, Refs, draw, global_id};

impl Model<'_> {
    /// A relation from one record to others, of the classes that name the one first; nothing where there are no others.
    pub(super) fn relate(&mut self, class: &str, one: Id, others: &[Id]) -> io::Result<()> {
        let (guid, history) = (self.relation(), self.history);
        match others {
            [] => {}
            [other] if class != "IFCRELAGGREGATES" => {
                self.step.record(format_args!(
                    "{class}('{guid}',{history},$,$,{one},{other})"
                ))?;
            }
            others => {
                let others = Refs(others);
                self.step.record(format_args!(
                    "{class}('{guid}',{history},$,$,{one},{others})"
                ))?;
            }
        }
        Ok(())
    }

    pub(super) fn contain(&mut self, elements: &[Id], container: Id) -> io::Result<()> {
        self.gather("IFCRELCONTAINEDINSPATIALSTRUCTURE", elements, container)
    }

    pub(super) fn associate_material(&mut self, material: Id, elements: &[Id]) -> io::Result<()> {
        self.gather("IFCRELASSOCIATESMATERIAL", elements, material)
    }

    pub(super) fn associate_code(&mut self, code: Id, elements: &[Id]) -> io::Result<()> {
        self.gather("IFCRELASSOCIATESCLASSIFICATION", elements, code)
    }

    /// A relation of the classes that name the many first; nothing where there are none.
    pub(super) fn gather(&mut self, class: &str, many: &[Id], one: Id) -> io::Result<()> {
        if !many.is_empty() {
            let (guid, history, many) = (self.relation(), self.history, Refs(many));
            self.step
                .record(format_args!("{class}('{guid}',{history},$,$,{many},{one})"))?;
        }
        Ok(())
    }

    pub(super) fn classify(
        &mut self,
        element: Id,
        code: &str,
        classification: Id,
    ) -> io::Result<()> {
        if code.is_empty() {
            return Ok(());
        }
        if !self.codes.contains_key(code) {
            let id = self.step.record(format_args!(
                "IFCCLASSIFICATIONREFERENCE($,'{code}','KG {code}',{classification},$,$)"
            ))?;
            self.codes.insert(code.to_owned(), (id, Vec::new()));
        }
        if let Some((id, waiting)) = self.codes.get_mut(code) {
            waiting.push(element);
            if waiting.len() == CHUNK {
                let (id, elements) = (*id, std::mem::take(waiting));
                self.associate_code(id, &elements)?;
            }
        }
        Ok(())
    }

    pub(super) fn guid(&self, topic: &str, key: &[u64]) -> String {
        global_id(self.seed, topic, key)
    }

    pub(super) fn relation(&mut self) -> String {
        self.relations += 1;
        self.guid("relation", &[self.relations])
    }

    pub(super) fn chance(&self, topic: &str, number: usize) -> u64 {
        draw(self.seed, topic, &[self.revision, number as u64])
    }
}
