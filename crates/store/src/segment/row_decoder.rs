//! Decodes rows; see `row_encoder`.

use std::fmt;

use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};

use super::row_encoder::RowError;

/// Maximum length of a number: 64 bits, seven in each byte.
const MAX_NUMBER_BYTES: usize = 10;

/// Takes one row off the beginning of `bytes`.
pub(super) fn take_row<T: DeserializeOwned>(bytes: &mut &[u8]) -> Result<T, RowError> {
    T::deserialize(&mut RowDecoder::new(bytes))
}

impl de::Error for RowError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Takes the values of a row off the beginning of some bytes.
struct RowDecoder<'b, 'de> {
    rest: &'b mut &'de [u8],
}

impl<'b, 'de> RowDecoder<'b, 'de> {
    fn new(rest: &'b mut &'de [u8]) -> Self {
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
    fn take_integer(&mut self) -> Result<i64, RowError> {
        let number = self.take_number()?;
        let sign = (number & 1).cast_signed();
        Ok((number >> 1).cast_signed() ^ -sign)
    }

    /// Takes a flag, or whether an option has a value.
    fn take_flag(&mut self) -> Result<bool, RowError> {
        self.take_byte().map(|byte| byte != 0)
    }

    fn take_text_bytes(&mut self) -> Result<&'de [u8], RowError> {
        let length = usize::try_from(self.take_number()?).unwrap_or(usize::MAX);
        let (text, rest) = self.rest.split_at_checked(length).ok_or_else(cut_row)?;
        *self.rest = rest;
        Ok(text)
    }

    fn take_text(&mut self) -> Result<&'de str, RowError> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use schemas::Provider;
    use schemas::session::{SessionRow, SourceRow, SourceStatus};

    use super::super::row_encoder::append_row;
    use super::super::session_brief::SessionBrief;
    use super::*;

    #[test]
    fn a_cut_row_is_an_error_and_names_of_enums_are_texts() {
        let row = SessionRow {
            session_id: "s1".to_owned(),
            title: Some("täxt".into()),
            ..SessionRow::default()
        };
        let mut bytes = Vec::new();
        append_row(&SessionBrief::from_row(&row), &mut bytes).expect("encodes");
        assert!(bytes.starts_with(b"\x02s1\x07generic\x00\x00\x01"));
        for cut in 0..bytes.len() {
            assert!(take_row::<SessionBrief>(&mut &bytes[..cut]).is_err(), "{cut}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            // It may be read as another row; checksums tell them apart.
            let _ = take_row::<SessionBrief>(&mut &damaged[..]);
        }
    }

    proptest! {
        #[test]
        fn rows_are_read_back(
            texts in proptest::collection::vec(proptest::option::of(".{0,200}"), 4),
            numbers in proptest::collection::vec(any::<i64>(), 4),
            flag in any::<bool>(),
        ) {
            let text = |at: usize| texts[at].clone();
            let session = SessionRow {
                session_id: text(0).unwrap_or_default(),
                provider: Provider::Codex,
                title: text(1),
                abandoned: text(2),
                started_at: flag.then_some(numbers[0]),
                events: numbers[1],
                source_gone: flag,
                segment: numbers[2],
                ..SessionRow::default()
            };
            let source = SourceRow {
                session_id: text(3),
                provider: flag.then_some(Provider::Kiro),
                head_hash: numbers[3],
                ..SourceRow::unread(text(0).unwrap_or_default(), SourceStatus::Gone, numbers[0], 1)
            };
            let mut bytes = Vec::new();
            append_row(&session, &mut bytes).expect("encodes");
            append_row(&SessionBrief::from_row(&session), &mut bytes).expect("encodes");
            append_row(&source, &mut bytes).expect("encodes");
            let mut rest = &bytes[..];
            prop_assert_eq!(take_row::<SessionRow>(&mut rest).expect("reads"), session.clone());
            let brief: SessionBrief = take_row(&mut rest).expect("reads");
            prop_assert_eq!(brief, SessionBrief::from_row(&session));
            prop_assert_eq!(take_row::<SourceRow>(&mut rest).expect("reads"), source);
            prop_assert!(rest.is_empty());
        }
    }
}
