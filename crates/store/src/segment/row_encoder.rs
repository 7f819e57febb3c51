//! Encodes the rows of the catalog: the values in the order of their fields.
//!
//! ```text
//! integer  the sign in the lowest bit, seven bits a byte
//! text     length in bytes, then UTF-8
//! enum     its name, as a text
//! flag     one byte
//! option   one byte, 0 or 1, then the value
//! struct   its values
//! ```

use std::fmt;

use serde::Serialize;
use serde::ser::{self, Impossible, SerializeStruct, Serializer};

/// Appends one row to some bytes. A row is a struct of texts, integers, flags, names
/// of enums, and options of these.
pub(super) fn append_row<T: Serialize>(row: &T, out: &mut Vec<u8>) -> Result<(), RowError> {
    row.serialize(RowEncoder(out))
}

/// A value that a row cannot hold, or bytes that are not a row.
#[derive(Debug)]
pub(super) struct RowError(pub(super) String);

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RowError {}

impl ser::Error for RowError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl RowError {
    /// Returns the error for a kind of value that no row has.
    pub(super) fn unsupported(kind: &str) -> Self {
        Self(format!("a row cannot hold {kind}"))
    }
}

/// Appends the values of a row.
struct RowEncoder<'o>(&'o mut Vec<u8>);

impl RowEncoder<'_> {
    /// Appends a number: seven bits a byte from the lowest up, all but the last with the highest bit
    /// set.
    fn append_number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn append_text(&mut self, text: &str) {
        self.append_number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }
}

/// Implements methods for values that no row has.
macro_rules! unsupported {
    ($($method:ident($($kind:ty),*);)+) => {
        $(fn $method(self, $(_: $kind),*) -> Result<(), RowError> {
            Err(RowError::unsupported(stringify!($method)))
        })+
    };
}

impl Serializer for RowEncoder<'_> {
    type Ok = ();
    type Error = RowError;
    type SerializeSeq = Impossible<(), RowError>;
    type SerializeTuple = Impossible<(), RowError>;
    type SerializeTupleStruct = Impossible<(), RowError>;
    type SerializeTupleVariant = Impossible<(), RowError>;
    type SerializeMap = Impossible<(), RowError>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Impossible<(), RowError>;

    fn serialize_bool(self, value: bool) -> Result<(), RowError> {
        self.0.push(u8::from(value));
        Ok(())
    }

    /// Small numbers of either sign take few bytes: the sign is the lowest bit.
    fn serialize_i64(mut self, value: i64) -> Result<(), RowError> {
        self.append_number(((value << 1) ^ (value >> 63)).cast_unsigned());
        Ok(())
    }

    fn serialize_str(mut self, value: &str) -> Result<(), RowError> {
        self.append_text(value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), RowError> {
        self.0.push(0);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), RowError> {
        self.0.push(1);
        value.serialize(self)
    }

    fn serialize_unit_variant(
        mut self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), RowError> {
        self.append_text(variant);
        Ok(())
    }

    fn serialize_struct(self, _name: &'static str, _fields: usize) -> Result<Self, RowError> {
        Ok(self)
    }

    unsupported! {
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_char(char);
        serialize_bytes(&[u8]);
        serialize_unit();
        serialize_unit_struct(&'static str);
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _value: &T,
    ) -> Result<(), RowError> {
        Err(RowError::unsupported("a newtype"))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<(), RowError> {
        Err(RowError::unsupported("a variant with a value"))
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Self::SerializeSeq, RowError> {
        Err(RowError::unsupported("a list"))
    }

    fn serialize_tuple(self, _length: usize) -> Result<Self::SerializeTuple, RowError> {
        Err(RowError::unsupported("a tuple"))
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeTupleStruct, RowError> {
        Err(RowError::unsupported("a tuple"))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeTupleVariant, RowError> {
        Err(RowError::unsupported("a variant with values"))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Self::SerializeMap, RowError> {
        Err(RowError::unsupported("a map"))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeStructVariant, RowError> {
        Err(RowError::unsupported("a variant with fields"))
    }
}

impl SerializeStruct for RowEncoder<'_> {
    type Ok = ();
    type Error = RowError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        _key: &'static str,
        value: &T,
    ) -> Result<(), RowError> {
        value.serialize(RowEncoder(self.0))
    }

    fn end(self) -> Result<(), RowError> {
        Ok(())
    }
}
