//! Writes batches as a Parquet file for other programs, and defines the properties that its files
//! and those of segments share.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

/// A Parquet file under construction.
pub struct ParquetFile<W: Write + Send>(ArrowWriter<W>);

impl<W: Write + Send> ParquetFile<W> {
    /// Begins a file with rows of `schema`, which is written to `out`.
    pub fn new(out: W, schema: SchemaRef) -> io::Result<Self> {
        let writer = ArrowWriter::try_new(out, schema, Some(shared_properties().build()));
        writer.map(Self).map_err(io_cause)
    }

    /// Appends the rows of `batch`.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.0.write(batch).map_err(io_cause)
    }

    /// Ends the file and returns the writer it was written to.
    pub fn finish(self) -> io::Result<W> {
        self.0.into_inner().map_err(io_cause)
    }
}

/// Converts an error to an I/O error: that of the underlying writer, if it is the cause.
fn io_cause(error: ParquetError) -> io::Error {
    let ParquetError::External(inner) = error else { return io::Error::other(error) };
    match inner.downcast::<io::Error>() {
        Ok(error) => *error,
        Err(other) => io::Error::other(other),
    }
}

/// Returns a builder with the properties that all files share.
pub(super) fn shared_properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default()))
        .set_created_by(concat!("sessions ", env!("CARGO_PKG_VERSION")).to_owned())
}
