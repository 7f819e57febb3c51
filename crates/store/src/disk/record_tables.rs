//! Tables of records in a database. Each record ends with a checksum, which also covers its table and its
//! id: none is missed or mistaken after damage.
//!
//! ```text
//! id      chosen by the user of the table
//! record  its bytes, then 8 bytes of checksum
//! ```

use std::ops::Range;

use rusqlite::{Connection, TransactionBehavior, params};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::database::Database;
use crate::error::StoreError;

/// Records with their ids, in the order of these.
type Records = Vec<(i64, Vec<u8>)>;

/// Number of bytes of a checksum.
const CHECK_BYTES: usize = 8;

impl Database {
    /// Returns a record; `None` if there is none.
    pub(crate) fn read_record(&self, table: &str, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        let mut found = self.read_records(table, id..id.saturating_add(1))?;
        Ok(found.pop().map(|(_, record)| record))
    }

    /// Returns the records with these ids, in their order.
    pub(crate) fn read_records(&self, table: &str, ids: Range<i64>) -> Result<Records, StoreError> {
        let [records] = self.read_together([(table, ids)])?;
        Ok(records)
    }

    /// Returns the records with these ids of several tables, each in their order, as they are at one
    /// moment: no change comes between them.
    pub(crate) fn read_together<const TABLES: usize>(
        &self,
        wanted: [(&str, Range<i64>); TABLES],
    ) -> Result<[Records; TABLES], StoreError> {
        let mut all = [const { Vec::new() }; TABLES];
        let mut connection = self.lock();
        let transaction = connection.transaction().map_err(|error| self.error(error))?;
        for (records, (table, ids)) in all.iter_mut().zip(wanted) {
            let found = find_records(&transaction, table, ids);
            for (id, record) in found.map_err(|error| self.error(error))? {
                records.push((id, self.check_record(table, id, record)?));
            }
        }
        Ok(all)
    }

    /// Checks the structure of the file, and every record of these tables.
    pub(crate) fn verify_records(
        &self,
        tables: impl IntoIterator<Item = &'static str>,
    ) -> Result<(), StoreError> {
        self.check_structure()?;
        let connection = self.lock();
        for table in tables {
            let sql = format!("SELECT id, record FROM {table}");
            let mut query = connection.prepare(&sql).map_err(|error| self.error(error))?;
            let mut rows = query.query([]).map_err(|error| self.error(error))?;
            while let Some(row) = rows.next().map_err(|error| self.error(error))? {
                let id = row.get(0).map_err(|error| self.error(error))?;
                let record = row.get(1).map_err(|error| self.error(error))?;
                self.check_record(table, id, record)?;
            }
        }
        Ok(())
    }

    /// Makes changes in one step. They are on disk when this returns.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let mut connection = self.lock();
        let done = connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(
            |transaction| {
                change(&transaction)?;
                transaction.commit()
            },
        );
        done.map_err(|error| self.error(error))
    }

    /// Returns a record without its checksum, if that is right.
    fn check_record(
        &self,
        table: &str,
        id: i64,
        mut record: Vec<u8>,
    ) -> Result<Vec<u8>, StoreError> {
        match record.split_last_chunk::<CHECK_BYTES>() {
            Some((bytes, check)) if checksum(table, id, bytes) == *check => {
                record.truncate(record.len() - CHECK_BYTES);
                Ok(record)
            }
            Some(_) | None => {
                let reason = format!("a record of {table} has another checksum");
                Err(StoreError::damaged(self.path(), reason))
            }
        }
    }
}

/// Returns the records with these ids, each with its checksum.
fn find_records(
    connection: &Connection,
    table: &str,
    ids: Range<i64>,
) -> rusqlite::Result<Records> {
    let sql = format!("SELECT id, record FROM {table} WHERE id >= ?1 AND id < ?2 ORDER BY id");
    let mut query = connection.prepare(&sql)?;
    let rows = query.query_map([ids.start, ids.end], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Creates a table.
pub(crate) fn create_table(connection: &Connection, table: &str) -> rusqlite::Result<()> {
    let sql = format!("CREATE TABLE {table}(id INTEGER PRIMARY KEY, record BLOB NOT NULL)");
    connection.execute_batch(&sql)
}

/// Adds or replaces records, which are given with their ids.
pub(crate) fn put_records(
    connection: &Connection,
    table: &str,
    records: impl IntoIterator<Item = (i64, impl AsRef<[u8]>)>,
) -> rusqlite::Result<()> {
    let mut put = connection.prepare(&format!("INSERT OR REPLACE INTO {table} VALUES(?1, ?2)"))?;
    for (id, record) in records {
        let record = record.as_ref();
        put.execute(params![id, [record, &checksum(table, id, record)].concat()])?;
    }
    Ok(())
}

/// Deletes the records with these ids.
pub(crate) fn delete_records(
    connection: &Connection,
    table: &str,
    ids: Range<i64>,
) -> rusqlite::Result<()> {
    let sql = format!("DELETE FROM {table} WHERE id >= ?1 AND id < ?2");
    connection.execute(&sql, [ids.start, ids.end])?;
    Ok(())
}

fn checksum(table: &str, id: i64, record: &[u8]) -> [u8; CHECK_BYTES] {
    let seed = xxh3_64_with_seed(table.as_bytes(), id.cast_unsigned());
    xxh3_64_with_seed(record, seed).to_le_bytes()
}
