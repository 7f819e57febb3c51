//! Builds the plans that are sent to Spark: SQL with bound parameters over the objects of a lake.

use std::collections::HashMap;

use schemas::table::{ColumnType, Table};
use spark_connect_proto::expression::literal::LiteralType;
use spark_connect_proto::expression::{ExprType, Literal};
use spark_connect_proto::read::{DataSource, ReadType};
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, Read, Relation, Sql, SubqueryAlias, WithRelations};

/// The values of the parameters of a statement, by their names.
#[derive(Debug, Default, Clone)]
pub(super) struct Parameters(HashMap<String, LiteralType>);

impl Parameters {
    /// Adds a value, and returns how a statement names it.
    pub(super) fn bind(&mut self, value: LiteralType) -> String {
        let name = format!("p{}", self.0.len());
        let place = format!(":{name}");
        self.0.insert(name, value);
        place
    }

    /// Adds a text, and returns how a statement names it.
    pub(super) fn bind_text(&mut self, text: impl Into<String>) -> String {
        self.bind(LiteralType::String(text.into()))
    }
}

/// Returns the rows of a statement over relations, each with the name that the statement gives it.
pub(super) fn select(
    sql: &str,
    parameters: Parameters,
    relations: Vec<(&str, Relation)>,
) -> Relation {
    let arguments = parameters.0.into_iter().map(|(name, value)| {
        let literal = Literal { literal_type: Some(value), ..Literal::default() };
        let value =
            Expression { expr_type: Some(ExprType::Literal(literal)), ..Expression::default() };
        (name, value)
    });
    let root = relation(RelType::Sql(Sql {
        query: sql.to_owned(),
        named_arguments: arguments.collect(),
        ..Sql::default()
    }));
    let references = relations.into_iter().map(|(name, input)| {
        relation(RelType::SubqueryAlias(Box::new(SubqueryAlias {
            input: Some(Box::new(input)),
            alias: name.to_owned(),
            ..SubqueryAlias::default()
        })))
    });
    relation(RelType::WithRelations(Box::new(WithRelations {
        root: Some(Box::new(root)),
        references: references.collect(),
    })))
}

/// Returns the rows of Parquet files, which have the public columns of a table. A column that a file
/// of an earlier version lacks is null.
pub(super) fn read_files(paths: Vec<String>, table: &Table) -> Relation {
    relation(RelType::Read(Read {
        read_type: Some(ReadType::DataSource(DataSource {
            format: Some("parquet".to_owned()),
            schema: Some(schema_of(table)),
            options: HashMap::new(),
            paths,
            ..DataSource::default()
        })),
        ..Read::default()
    }))
}

fn relation(kind: RelType) -> Relation {
    Relation { rel_type: Some(kind), ..Relation::default() }
}

/// Returns the columns of a table as Spark's SQL writes them.
fn schema_of(table: &Table) -> String {
    let columns = table.columns.iter().filter(|column| !column.is_internal);
    let columns = columns.map(|column| format!("`{}` {}", column.name, type_name(column.kind)));
    columns.collect::<Vec<_>>().join(", ")
}

fn type_name(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Text => "STRING",
        ColumnType::Int => "INT",
        ColumnType::BigInt => "BIGINT",
        ColumnType::Bool => "BOOLEAN",
        ColumnType::TextList => "ARRAY<STRING>",
        ColumnType::Timestamp => "TIMESTAMP",
        ColumnType::Date => "DATE",
        ColumnType::Double => "DOUBLE",
    }
}
