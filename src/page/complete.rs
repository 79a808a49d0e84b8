//! Data for templates with all of its fields: one that serialization leaves out is none, so an unknown name is always a mistake.
//! Fields of a flattened structure are lost: a template gets them by `context! { .., ..value(data) }`.

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Data that is serialized with all fields of its structures.
pub(super) struct Complete<T>(pub(super) T);

impl<T: Serialize> Serialize for Complete<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Filling(serializer))
    }
}

/// Serializes like the serializer inside, but writes none for a field that is skipped.
struct Filling<S>(S);

macro_rules! scalars {
    ($($method:ident: $kind:ty,)*) => {$(
        fn $method(self, value: $kind) -> Result<S::Ok, S::Error> {
            self.0.$method(value)
        }
    )*};
}

/// Opens sequences, maps and structures in the serializer inside.
macro_rules! opened {
    ($($method:ident($($name:ident: $kind:ty),*) -> $of:ident,)*) => {$(
        fn $method(self, $($name: $kind),*) -> Result<Self::$of, S::Error> {
            self.0.$method($($name),*).map(Filling)
        }
    )*};
}

impl<S: Serializer> Serializer for Filling<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Filling<S::SerializeSeq>;
    type SerializeTuple = Filling<S::SerializeTuple>;
    type SerializeTupleStruct = Filling<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Filling<S::SerializeTupleVariant>;
    type SerializeMap = Filling<S::SerializeMap>;
    type SerializeStruct = Filling<S::SerializeStruct>;
    type SerializeStructVariant = Filling<S::SerializeStructVariant>;

    scalars! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
        serialize_str: &str,
        serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    opened! {
        serialize_seq(len: Option<usize>) -> SerializeSeq,
        serialize_tuple(len: usize) -> SerializeTuple,
        serialize_tuple_struct(name: &'static str, len: usize) -> SerializeTupleStruct,
        serialize_tuple_variant(name: &'static str, index: u32, variant: &'static str, len: usize) -> SerializeTupleVariant,
        serialize_map(len: Option<usize>) -> SerializeMap,
        serialize_struct(name: &'static str, len: usize) -> SerializeStruct,
        serialize_struct_variant(name: &'static str, index: u32, variant: &'static str, len: usize) -> SerializeStructVariant,
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_none()
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Complete(value))
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_struct(name, &Complete(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let value = Complete(value);
        self.0
            .serialize_newtype_variant(name, index, variant, &value)
    }
}

macro_rules! sequences {
    ($($of:ident: $method:ident,)*) => {$(
        impl<S: $of> $of for Filling<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                self.0.$method(&Complete(value))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )*};
}

sequences! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

impl<S: SerializeMap> SerializeMap for Filling<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Complete(value))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

macro_rules! structures {
    ($($of:ident,)*) => {$(
        impl<S: $of> $of for Filling<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), S::Error> {
                self.0.serialize_field(key, &Complete(value))
            }

            fn skip_field(&mut self, key: &'static str) -> Result<(), S::Error> {
                self.0.serialize_field(key, &())
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )*};
}

structures! {
    SerializeStruct,
    SerializeStructVariant,
}
