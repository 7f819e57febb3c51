//! Sessions as objects of a lake: encodes them, decodes foreign ones, and writes these into segments.

pub(super) mod decode;
pub(super) mod encode;
pub(super) mod import;
pub(super) mod keys;
pub(super) mod session_object;
mod thrift;
