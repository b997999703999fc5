//! Order entry in PostgreSQL: tables without keys are loaded by COPY, then indexed, vacuumed and held against what was asked for.

use std::io::Cursor;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::SinkExt;

use super::catalog::Server;
use super::session::{Access, Halt, Session};
use super::setup::{open_with, sort_settings};
use crate::SqlText as _;
use crate::data::Work;
use crate::data::pieces::Piece;
use crate::data::streams::Stream;
use crate::orders::ddl::{list, next_number};
use crate::orders::load::{OrdersSetting, procedure};
use crate::orders::{BuiltIndex, KeyStatements, OrdersData, OrdersDialect, Sizing, Source, ddl, partition_name};
use crate::postgres::data::catalog;
use crate::postgres::data::setup::{HEADER, TRAILER};
use crate::postgres::sql::{identifier, literal};
use crate::postgres::{Connector, PostgresOrders};
use model::workload::orders::Table;
use model::workload::orders::rows::Fields;
use model::workload::orders::tables::{Column, Key, Kind, Sequence};
use targets::TargetError;
use targets::database::Phase;
use targets::orders::Indexes;

/// Memory that each stream sorts with while it builds an index, at most: indexes of order entry are many and narrow.
const SORT_BYTES: u64 = 256 << 20;
impl OrdersDialect for Connector {
    type Orders = PostgresOrders;
    const SETTLING: Phase = Phase::Vacuum;
    const LOADS_SPARSE_WHOLE: bool = true;
    const SIZING: Sizing = Sizing {
        // Its header, its line pointer, and what it is rounded up by.
        row_bytes: 24.0 + 4.0 + 4.0,
        fill: 1.0,
        sparse_fill: 0.1,
        // Its header, its line pointer and its key.
        entry_bytes: 8.0 + 4.0 + 8.0,
        index_fill: 0.9,
        keys_are_apart: true,
        sorts_together: false,
        // Many rows of a block are logged together, and indexes block by block.
        logged_bytes: 8.0,
        logs_indexes: true,
        // As private servers are made; what a checkpoint has made needless is written over.
        most_log: 4 << 30,
    };

    fn orders_servers(&self, namespace: &str, setting: OrdersSetting) -> PostgresOrders {
        PostgresOrders::new(self.clone(), namespace, setting)
    }

    fn parts_there(namespace: &str) -> String {
        parts_there(namespace)
    }

    fn procedures_there(namespace: &str) -> String {
        format!(
            "SELECT p.proname, format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)), \
             obj_description(p.oid, 'pg_proc') FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
             WHERE n.nspname = {} AND p.proname IN ({}) ORDER BY p.proname",
            literal(namespace),
            procedure::names()
        )
    }

    fn remarks_on(data: &OrdersData) -> Vec<String> {
        let is_wide = data.partitions > 0 && data.indexes != Indexes::None;
        let remark =
            "the key of card_details has customer_id in it too: a key has the column that decides on the partition";
        is_wide.then(|| remark.to_owned()).into_iter().collect()
    }

    fn create_orders_table(namespace: &str, data: &OrdersData, table: Table, forget: String) -> Vec<String> {
        let statements = create_table(namespace, data, table);
        vec![format!("BEGIN; {}; {forget}; COMMIT", statements.join("; "))]
    }

    fn key_statements(namespace: &str, data: &OrdersData, table: Table, key: &Key) -> KeyStatements {
        key_statements(namespace, data, table, key)
    }

    fn number_rows(namespace: &str, data: &OrdersData, sequence: &Sequence, is_there: bool) -> Vec<String> {
        (!is_there).then(|| number_rows(namespace, data, sequence)).into_iter().collect()
    }

    fn open_for_building<'a>(access: Access<'a>, halt: Halt<'_>) -> Result<Session<'a>, TargetError> {
        open_with(access, &sort_settings(SORT_BYTES), halt)
    }

    fn settle(session: &mut Session<'_>, data: &OrdersData, table: Table, halt: Halt<'_>) -> Result<(), TargetError> {
        let namespace = session.access().namespace;
        let name = Self::qualified(namespace, table.name());
        let doing = format!("vacuum {name}");
        // VACUUM wants to be alone in its message.
        session.execute(&doing, &format!("VACUUM (ANALYZE) {name}"), halt)?;
        let parts = match data.partitions_of(table) {
            Some(partitions) => (0..partitions).map(|number| partition_name(table, number)).collect(),
            None => vec![table.name().to_owned()],
        };
        let reset =
            |name: &String| format!("ALTER TABLE {} RESET (autovacuum_enabled)", Self::qualified(namespace, name));
        session.execute(&doing, &parts.iter().map(reset).collect::<Vec<_>>().join("; "), halt)
    }

    fn write_out_orders(work: &mut Work<'_, Self, OrdersData>) -> Result<(), TargetError> {
        work.write_checkpoint()
    }

    fn load_orders(
        session: &mut Session<'_>,
        _: &Server,
        source: &Source,
        piece: &Piece<Table>,
        stream: &Stream<'_>,
    ) -> Result<(), TargetError> {
        load_copy(session, source, piece, stream)
    }
}

/// How full blocks of sparse tables are loaded, in percent: the least that PostgreSQL can.
const SPARSE_FILL: u32 = 10;
/// Numbers that a session takes from a sequence at a time. Each session has its own, so many more would leave large gaps.
const CACHED_NUMBERS: u32 = 100;

fn table_name(namespace: &str, table: Table) -> String {
    Connector::qualified(namespace, table.name())
}

/// Settings of a table's storage while it is loaded. Nobody else should look at it then: it is vacuumed at the end anyway.
fn storage(table: Table) -> String {
    let sparse = if table.is_sparse() { format!("fillfactor = {SPARSE_FILL}, ") } else { String::new() };
    format!("WITH ({sparse}autovacuum_enabled = off)")
}

/// Statements that make an empty table without keys.
fn create_table(namespace: &str, data: &OrdersData, table: Table) -> Vec<String> {
    let name = table_name(namespace, table);
    let make = ddl::create_table::<Connector>(namespace, table);
    let (Some(by), Some(partitions)) = (table.partitioned_by(), data.partitions_of(table)) else {
        return vec![format!("{make} {}", storage(table))];
    };
    let partition = |number: u32| {
        format!(
            "CREATE TABLE {} PARTITION OF {name} FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number}) {}",
            Connector::qualified(namespace, &partition_name(table, number)),
            storage(table)
        )
    };
    let parent = format!("{make} PARTITION BY HASH ({})", identifier(by));
    std::iter::once(parent).chain((0..partitions).map(partition)).collect()
}

/// How a table gets its key: one that is partitioned at once, since a key cannot be made of an index there.
fn key_statements(namespace: &str, data: &OrdersData, table: Table, key: &Key) -> KeyStatements {
    let (columns, name) = (data.key_columns(table), identifier(key.name));
    let add = format!("ALTER TABLE {} ADD CONSTRAINT {name} PRIMARY KEY", table_name(namespace, table));
    if data.partitions_of(table).is_some() {
        let whole = format!("{add} ({})", list::<Connector>(&columns));
        return KeyStatements { index: Some(whole), key: None };
    }
    let index = Connector::create_index(namespace, data, &BuiltIndex::of_key(table, key.name, &columns));
    KeyStatements { index: Some(index), key: Some(format!("{add} USING INDEX {name}")) }
}

/// Has a sequence number the rows of its table.
fn number_rows(namespace: &str, data: &OrdersData, sequence: &Sequence) -> String {
    let (name, own) = (table_name(namespace, sequence.table), Connector::qualified(namespace, sequence.name));
    let (column, next) = (identifier(sequence.column), next_number(sequence.table, &data.sizes));
    format!(
        "CREATE SEQUENCE {own} START {next} CACHE {CACHED_NUMBERS} OWNED BY {name}.{column}; \
         ALTER TABLE {name} ALTER COLUMN {column} SET DEFAULT nextval({}::regclass)",
        literal(&own)
    )
}

/// The statement that gives kind and name of everything whole in the schema.
fn parts_there(namespace: &str) -> String {
    format!(
        "WITH here AS (SELECT oid FROM pg_namespace WHERE nspname = {}) \
         SELECT CASE WHEN relkind IN ('r', 'p') THEN 'table' WHEN relkind = 'S' THEN 'sequence' ELSE 'index' END, relname::text \
         FROM pg_class WHERE relnamespace IN (SELECT oid FROM here) AND (relkind IN ('r', 'p', 'S') \
         OR oid IN (SELECT indexrelid FROM pg_index WHERE indisvalid)) \
         UNION ALL SELECT CASE contype WHEN 'p' THEN 'key' WHEN 'f' THEN 'foreign_key' ELSE 'check' END, conname::text \
         FROM pg_constraint WHERE connamespace IN (SELECT oid FROM here) AND contype IN ('p', 'f', 'c') AND convalidated",
        literal(namespace)
    )
}

/// Bytes that are sent at once: enough to cost few calls, and so little that the server still has something to read from its socket
/// (about 200 KiB, written to again when three quarters are read) while the next are made.
const BUFFER_BYTES: u64 = 64 << 10;
/// Room in a buffer beyond that, for units that are longer than the mean.
const SPARE_BYTES: usize = 128 << 10;
/// How long a piece may go on when the load is to end: one that is given up leaves its blocks behind, empty.
const PIECE_PATIENCE: Duration = Duration::from_secs(5);
/// PostgreSQL counts days and microseconds from 2000-01-01 on.
const EPOCH_DAY: i32 = 10_957;
const EPOCH_MICROS: i64 = EPOCH_DAY as i64 * 86_400_000_000;

/// Bytes that are sent, and written anew when nobody has them any more.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// What is sent.
type Buffer = Cursor<Shared>;

/// Writes rows in the binary form of COPY, in buffers that are used again as soon as they have been sent.
#[derive(Default)]
struct Encoder {
    buffers: Vec<Arc<Vec<u8>>>,
}

/// Rows of one table that are being written.
struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    columns: &'static [Column],
    /// Number of the next field.
    at: usize,
}

impl Encoder {
    /// The rows of these units of a table, and how many they are.
    fn encode(&mut self, source: &Source, table: Table, units: std::ops::Range<u64>) -> (Buffer, u64) {
        // One that has been sent, or a new one.
        let idle = self.buffers.iter().position(|buffer| Arc::strong_count(buffer) == 1);
        let mut buffer = match idle {
            Some(idle) => self.buffers.swap_remove(idle),
            None => Arc::new(Vec::with_capacity(BUFFER_BYTES as usize + SPARE_BYTES)),
        };
        let bytes = Arc::get_mut(&mut buffer).expect("an idle buffer has one owner");
        bytes.clear();
        let rows = source.rows.each(table, units, &mut Writer { bytes, columns: table.columns(), at: 0 });
        self.buffers.push(Arc::clone(&buffer));
        (Cursor::new(Shared(buffer)), rows)
    }
}

impl Writer<'_> {
    fn field(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(&(value.len() as i32).to_be_bytes());
        self.bytes.extend_from_slice(value);
        self.at += 1;
    }
}

impl Fields for Writer<'_> {
    fn begin_row(&mut self) {
        self.at = 0;
        self.bytes.extend_from_slice(&(self.columns.len() as i16).to_be_bytes());
    }

    fn null(&mut self) {
        self.at += 1;
        self.bytes.extend_from_slice(&(-1_i32).to_be_bytes());
    }

    fn whole(&mut self, number: i64) {
        match self.columns[self.at].kind {
            Kind::Whole(..=9) => self.field(&(number as i32).to_be_bytes()),
            _ => self.field(&number.to_be_bytes()),
        }
    }

    /// In digits of base 10,000: how many, the power of the first, the sign, how many decimal digits are shown behind the point, and
    /// they themselves without zeros at the ends.
    fn money(&mut self, cents: i64) {
        let (whole, behind) = (cents / 100, (cents % 100 * 100) as u16);
        let groups = [(whole / 100_000_000) as u16, (whole / 10_000 % 10_000) as u16, (whole % 10_000) as u16, behind];
        let first = groups.iter().position(|group| *group != 0).unwrap_or(groups.len());
        let end = groups.iter().rposition(|group| *group != 0).map_or(first, |last| last + 1);
        let mut value = [0; 16];
        let weight = if first == end { 0 } else { 2 - first as i16 };
        value[..2].copy_from_slice(&((end - first) as i16).to_be_bytes());
        value[2..4].copy_from_slice(&weight.to_be_bytes());
        value[6..8].copy_from_slice(&2_i16.to_be_bytes());
        for (place, group) in value[8..].chunks_exact_mut(2).zip(&groups[first..end]) {
            place.copy_from_slice(&group.to_be_bytes());
        }
        self.field(&value[..8 + 2 * (end - first)]);
    }

    fn text(&mut self, parts: &[&str]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.bytes.extend_from_slice(&(length as i32).to_be_bytes());
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part.as_bytes()));
        self.at += 1;
    }

    fn day(&mut self, days: i32) {
        self.field(&(days - EPOCH_DAY).to_be_bytes());
    }

    fn instant(&mut self, micros: i64) {
        self.field(&(micros - EPOCH_MICROS).to_be_bytes());
    }

    fn end_row(&mut self) {}
}

/// Loads one piece and its mark: both or neither.
fn load_copy(
    session: &Session<'_>,
    source: &Source,
    piece: &Piece<Table>,
    stream: &Stream<'_>,
) -> Result<(), TargetError> {
    let Piece { table, first, places, .. } = *piece;
    let access = session.access();
    let name = Connector::qualified(access.namespace, table.name());
    let columns: Vec<String> = table.columns().iter().map(|column| identifier(column.name)).collect();
    // Rows of a table that is one piece can be frozen where they are written, so nobody writes its blocks again to do so; a
    // partitioned table's cannot.
    let is_whole = places == table.units(source.rows.sizes()) && table.partitioned_by().is_none();
    let (begin, freeze) =
        if is_whole { (format!("BEGIN; TRUNCATE {name}"), ", FREEZE") } else { ("BEGIN".to_owned(), "") };
    let copy = format!("COPY {name} ({}) FROM STDIN (FORMAT binary{freeze})", columns.join(", "));
    let at_once = (BUFFER_BYTES / source.bytes_of_units(table, 1).max(1)).clamp(1, BUFFER_BYTES / 128);
    session.wait_with_patience(&format!("load rows into {name}"), stream.halt, PIECE_PATIENCE, async {
        let (client, mut encoder) = (session.client(), Encoder::default());
        client.batch_execute(&begin).await?;
        let mut sink = pin!(client.copy_in::<_, Buffer>(&copy).await?);
        sink.feed(Cursor::new(Shared(Arc::new(HEADER.to_vec())))).await?;
        let (mut at, mut rows) = (first, 0);
        while at < first + places {
            let units = at_once.min(first + places - at);
            let (buffer, count) = encoder.encode(source, table, at..at + units);
            sink.feed(buffer).await?;
            at += units;
            rows += count;
            stream.done(source.bytes_of_units(table, units));
        }
        sink.feed(Cursor::new(Shared(Arc::new(TRAILER.to_vec())))).await?;
        sink.finish().await?;
        let mark = format!(
            "INSERT INTO {} VALUES ({}, {first}, {places}, {rows}); COMMIT",
            catalog::load_table::<OrdersData>(access),
            literal(table.name())
        );
        client.batch_execute(&mark).await
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::{Parts, sample};
    use targets::orders::Indexes;

    fn all(data: &OrdersData) -> Vec<String> {
        let created = Table::ALL.into_iter().flat_map(|table| create_table("s", data, table));
        let later = Connector::steps("s", data, &Parts::new()).into_iter().flat_map(|step| step.jobs);
        created.chain(later.flat_map(|job| job.statements)).collect()
    }

    #[test]
    fn tables_are_worded_as_the_server_takes_them() {
        insta::assert_snapshot!(all(&sample()).join(";\n"));
    }

    #[test]
    fn partitioned_tables_have_the_column_that_decides_in_their_key() {
        let data = OrdersData { partitions: 2, ..sample() };
        let statements = all(&data);
        let has = |part: &str| assert!(statements.iter().any(|text| text.contains(part)), "{part} in {statements:#?}");
        has("PARTITION BY HASH (\"customer_id\")");
        has("CREATE TABLE \"s\".\"orders_p2\" PARTITION OF \"s\".\"orders\" FOR VALUES WITH (MODULUS 2, REMAINDER 1)");
        has("ADD CONSTRAINT \"card_details_pk\" PRIMARY KEY (\"card_id\", \"customer_id\")");
        let made = statements.iter().filter(|text| text.contains("CREATE TABLE")).count();
        assert_eq!(made, 11 + 5 * 2);
    }

    #[test]
    fn what_is_there_is_not_made_again_and_what_is_not_asked_for_never() {
        let whole = crate::orders::parts_of(&sample());
        assert!(Connector::steps("s", &sample(), &whole).iter().all(|step| step.jobs.is_empty()));
        let keys = OrdersData { indexes: Indexes::Keys, ..sample() };
        let built = &Connector::steps("s", &keys, &Parts::new())[0];
        assert_eq!(built.jobs.len(), 9, "one for each key");
        let none = OrdersData { indexes: Indexes::None, ..sample() };
        let [built, numbered] = &Connector::steps("s", &none, &Parts::new())[..] else { panic!() };
        assert_eq!((built.jobs.len(), numbered.jobs.len()), (0, 5), "sequences alone");
    }

    fn money(cents: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        Writer { bytes: &mut bytes, columns: Table::Orders.columns(), at: 5 }.money(cents);
        bytes.split_off(4)
    }

    #[test]
    fn money_is_written_as_the_server_reads_numbers() {
        let numeric = |weight: i16, digits: &[i16]| -> Vec<u8> {
            let head = [digits.len() as i16, weight, 0, 2];
            head.iter().chain(digits).flat_map(|part| part.to_be_bytes()).collect()
        };
        assert_eq!(money(0), numeric(0, &[]));
        assert_eq!(money(5), numeric(-1, &[500]));
        assert_eq!(money(100), numeric(0, &[1]));
        assert_eq!(money(12_345), numeric(0, &[123, 4_500]));
        assert_eq!(money(1_000_000), numeric(1, &[1]));
        assert_eq!(money(123_456_789_012), numeric(2, &[12, 3_456, 7_890, 1_200]));
    }
}
