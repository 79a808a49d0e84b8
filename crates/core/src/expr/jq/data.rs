//! The data that jaq's filters see during a run: the compiled filters and the records that `inputs` reads.

use jaq_core::data::HasLut;
use jaq_core::{DataT, Lut};
use jaq_json::Val;
use jaq_std::input::{HasInputs, Inputs};

/// The types of values and data for jaq.
#[derive(Debug)]
pub(crate) struct Data;

/// The filters and the input records of a run.
#[derive(Clone)]
pub(crate) struct RunData<'a> {
    pub(crate) lut: &'a Lut<Data>,
    pub(crate) inputs: Inputs<'a, Val>,
}

impl DataT for Data {
    type V<'a> = Val;
    type Data<'a> = RunData<'a>;
}

impl<'a> HasLut<'a, Data> for RunData<'a> {
    fn lut(&self) -> &'a Lut<Data> {
        self.lut
    }
}

impl<'a> HasInputs<'a, Val> for RunData<'a> {
    fn inputs(&self) -> Inputs<'a, Val> {
        self.inputs
    }
}
