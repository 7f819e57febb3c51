//! Decodes the rows of a row file; see `row_file`.

use std::fmt;

use serde::de::value::{Error as NameError, StrDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};

use super::row_encoder::RowError;

/// Maximum length of a number: 64 bits, seven in each byte.
const MAX_NUMBER_BYTES: usize = 10;

/// Takes one row off the beginning of `bytes`.
pub(super) fn take_row<T: DeserializeOwned>(bytes: &mut &[u8]) -> Result<T, RowError> {
    T::deserialize(&mut RowDecoder::new(bytes))
}

/// Returns the first field of a row, which is a text.
pub(super) fn first_text(row: &[u8]) -> Result<&str, RowError> {
    RowDecoder::new(&mut &*row).take_text()
}

/// Parses the name of an enum's variant, as a row file has it.
pub(super) fn parse_name<'n, T: Deserialize<'n>>(name: &'n str) -> Result<T, RowError> {
    let decoder: StrDeserializer<'n, NameError> = name.into_deserializer();
    T::deserialize(decoder).map_err(|error| RowError(error.to_string()))
}

impl de::Error for RowError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Takes the values of a row off the beginning of some bytes.
pub(super) struct RowDecoder<'b, 'de> {
    rest: &'b mut &'de [u8],
}

impl<'b, 'de> RowDecoder<'b, 'de> {
    pub(super) fn new(rest: &'b mut &'de [u8]) -> Self {
        Self { rest }
    }
}

impl<'de> RowDecoder<'_, 'de> {
    fn take_byte(&mut self) -> Result<u8, RowError> {
        let (first, rest) = self.rest.split_first().ok_or_else(cut_row)?;
        *self.rest = rest;
        Ok(*first)
    }

    /// Takes a number of at most [`MAX_NUMBER_BYTES`] bytes.
    fn take_number(&mut self) -> Result<u64, RowError> {
        // Most numbers take one byte.
        if let Some((first, rest)) = self.rest.split_first()
            && *first < 0x80
        {
            *self.rest = rest;
            return Ok(u64::from(*first));
        }

        let mut number: u64 = 0;
        let mut shift = 0;
        for (at, byte) in self.rest.iter().enumerate().take(MAX_NUMBER_BYTES) {
            number |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                *self.rest = &self.rest[at + 1..];
                return Ok(number);
            }
            shift += 7;
        }
        if self.rest.len() < MAX_NUMBER_BYTES {
            return Err(cut_row());
        }
        Err(RowError("a number is too long".to_owned()))
    }

    /// Takes a number with a sign.
    pub(super) fn take_integer(&mut self) -> Result<i64, RowError> {
        let number = self.take_number()?;
        let sign = (number & 1).cast_signed();
        Ok((number >> 1).cast_signed() ^ -sign)
    }

    /// Takes a flag, or whether an option has a value.
    pub(super) fn take_flag(&mut self) -> Result<bool, RowError> {
        self.take_byte().map(|byte| byte != 0)
    }

    /// Takes an optional value.
    pub(super) fn take_option<T>(
        &mut self,
        take: impl FnOnce(&mut Self) -> Result<T, RowError>,
    ) -> Result<Option<T>, RowError> {
        if self.take_flag()? { take(self).map(Some) } else { Ok(None) }
    }

    /// Returns the bytes of what `skip` takes.
    pub(super) fn take_bytes_of(
        &mut self,
        skip: impl FnOnce(&mut Self) -> Result<(), RowError>,
    ) -> Result<&'de [u8], RowError> {
        let before = *self.rest;
        skip(self)?;
        Ok(&before[..before.len() - self.rest.len()])
    }

    pub(super) fn take_text_bytes(&mut self) -> Result<&'de [u8], RowError> {
        let length = usize::try_from(self.take_number()?).unwrap_or(usize::MAX);
        let (text, rest) = self.rest.split_at_checked(length).ok_or_else(cut_row)?;
        *self.rest = rest;
        Ok(text)
    }

    pub(super) fn skip_text(&mut self) -> Result<(), RowError> {
        self.take_text_bytes().map(|_| ())
    }

    pub(super) fn take_text(&mut self) -> Result<&'de str, RowError> {
        let text = self.take_text_bytes()?;
        std::str::from_utf8(text).map_err(|_| RowError("a text is not UTF-8".to_owned()))
    }
}

fn cut_row() -> RowError {
    RowError("it ends within a row".to_owned())
}

impl<'de> Deserializer<'de> for &mut RowDecoder<'_, 'de> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, RowError> {
        Err(RowError::unsupported("a value of this kind"))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        let flag = self.take_flag()?;
        visitor.visit_bool(flag)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        let number = self.take_integer()?;
        visitor.visit_i64(number)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        let text = self.take_text()?;
        visitor.visit_borrowed_str(text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        if self.take_flag()? { visitor.visit_some(self) } else { visitor.visit_none() }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        let name = self.take_text()?;
        visitor.visit_enum(name.into_deserializer())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_seq(FieldValues { decoder: self, remaining: fields.len() })
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The values of the fields of a struct, in their order.
struct FieldValues<'d, 'b, 'de> {
    decoder: &'d mut RowDecoder<'b, 'de>,
    remaining: usize,
}

impl<'de> SeqAccess<'de> for FieldValues<'_, '_, 'de> {
    type Error = RowError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, RowError> {
        let Some(remaining) = self.remaining.checked_sub(1) else { return Ok(None) };
        self.remaining = remaining;
        seed.deserialize(&mut *self.decoder).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.remaining)
    }
}
