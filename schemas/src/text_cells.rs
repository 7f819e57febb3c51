//! The texts of rows, which are cleaned and masked before they are stored.

use crate::problem::Problem;
use crate::session::{SessionRow, SourceRow};

/// A row whose texts can be changed in place.
pub trait TextCells {
    /// Calls `change` with the name of the column and the value of each text, in the order of the
    /// columns of the table. Values of enums are not texts, nor are absent ones.
    fn for_each_text(&mut self, change: &mut dyn FnMut(&'static str, &mut String));
}

/// Implements [`TextCells`] for a row with these columns.
macro_rules! text_cells {
    ($row:ty: $($required:ident),*; $($optional:ident),*) => {
        impl TextCells for $row {
            fn for_each_text(&mut self, change: &mut dyn FnMut(&'static str, &mut String)) {
                $(change(stringify!($required), &mut self.$required);)*
                $(if let Some(text) = &mut self.$optional {
                    change(stringify!($optional), text);
                })*
            }
        }
    };
}

text_cells!(SessionRow:
    session_id, source_path;
    native_id, parent_session_id, relation, agent_id, title, project, cwd, git_branch, model,
    agent_version, time_source, usage_confidence, usage_by_model, repository, abandoned, drift,
    redactions, machine, user_name);
text_cells!(SourceRow: path; session_id, ancestors, state, reason);
text_cells!(Problem: path, message;);

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::Value;

    use super::*;
    use crate::problem::ProblemKind;
    use crate::session::SourceStatus;
    use crate::table::{ColumnType, PROBLEMS, SESSIONS, SOURCES, Table};

    /// Returns a row in which every text of the table is its column's name, made from `row`.
    fn with_names<R: Serialize + for<'de> Deserialize<'de>>(
        table: &Table,
        row: &R,
    ) -> (R, Vec<&'static str>) {
        let Ok(Value::Object(mut cells)) = serde_json::to_value(row) else { panic!("an object") };
        let mut names = Vec::new();
        for column in table.columns {
            let is_enum = matches!(column.name, "provider" | "status" | "kind");
            if column.kind == ColumnType::Text && !is_enum {
                cells.insert(column.name.to_owned(), column.name.into());
                names.push(column.name);
            }
        }
        (serde_json::from_value(Value::Object(cells)).expect("a row"), names)
    }

    fn check<R: TextCells + Serialize + for<'de> Deserialize<'de>>(table: &Table, row: &R) {
        let (mut row, names) = with_names(table, row);
        let mut found = Vec::new();
        row.for_each_text(&mut |name, text| {
            assert_eq!(text, name);
            found.push(name);
        });
        assert_eq!(found, names, "{}", table.name);
    }

    /// A column that is forgotten would not be masked.
    #[test]
    fn every_text_of_a_row_is_visited_in_the_order_of_the_table() {
        check(&SESSIONS, &SessionRow::default());
        check(&SOURCES, &SourceRow::unread(String::new(), SourceStatus::Ok, 0, 0));
        let (path, message) = (String::new(), String::new());
        let problem = Problem { path, line: 0, byte: 0, kind: ProblemKind::BadJson, message };
        check(&PROBLEMS, &problem);
    }
}
