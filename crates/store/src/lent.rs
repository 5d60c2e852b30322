//! Connections to PostgreSQL while somebody uses them: what they are asked, how long that may take, and what becomes of one
//! that does not answer.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Column as _, Postgres, Row as _, TypeInfo as _, ValueRef as _};

use crate::StoreError;
use crate::value::{Row, Value};

/// How long PostgreSQL may take to answer a statement. A connection whose other end is gone never says so by itself.
const ANSWER: Duration = Duration::from_secs(60);

/// A connection of a pool. One that still owes an answer, or is inside a transaction, is closed and not given back: what was
/// going on there ends with it, and a pool that waits for a dead one has one fewer for ever.
pub(crate) struct Lent {
    connection: PoolConnection<Postgres>,
    whole: bool,
}

impl Lent {
    pub(crate) async fn from(pool: &sqlx::PgPool) -> Result<Self, StoreError> {
        Ok(Self { connection: pool.acquire().await?, whole: true })
    }

    pub(crate) async fn begin(pool: &sqlx::PgPool) -> Result<Self, StoreError> {
        let mut lent = Self::from(pool).await?;
        lent.whole = false;
        lent.say("BEGIN").await?;
        Ok(lent)
    }

    pub(crate) async fn end(mut self, how: &'static str) -> Result<(), StoreError> {
        self.say(how).await?;
        self.whole = true;
        Ok(())
    }

    /// Statements without values, however long they take.
    pub(crate) async fn script(&mut self, sql: &'static str) -> Result<(), StoreError> {
        Ok(sqlx::raw_sql(sql).execute(&mut *self.connection).await.map(drop)?)
    }

    async fn say(&mut self, word: &'static str) -> Result<(), StoreError> {
        let said = sqlx::raw_sql(word).execute(&mut *self.connection);
        within(ANSWER, async { Ok(said.await.map(drop)?) }).await
    }

    pub(crate) async fn fetch(&mut self, query: Query<'_>) -> Result<Vec<Row>, StoreError> {
        self.fetch_within(ANSWER, query).await
    }

    pub(crate) async fn fetch_within(&mut self, most: Duration, query: Query<'_>) -> Result<Vec<Row>, StoreError> {
        let whole = std::mem::replace(&mut self.whole, false);
        let fetched = query.fetch_all(&mut *self.connection);
        let rows = within(most, async { Ok(fetched.await) }).await?;
        self.whole = whole;
        postgres_rows(&rows?)
    }

    pub(crate) async fn execute(&mut self, query: Query<'_>) -> Result<u64, StoreError> {
        let whole = std::mem::replace(&mut self.whole, false);
        let executed = query.execute(&mut *self.connection);
        let done = within(ANSWER, async { Ok(executed.await) }).await?;
        self.whole = whole;
        Ok(done?.rows_affected())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.whole {
            self.connection.close_on_drop();
        }
    }
}

/// A statement of PostgreSQL with its values.
type Query<'q> = sqlx::query::Query<'q, Postgres, sqlx::postgres::PgArguments>;

/// Waits so long, and then takes the database for gone.
pub(crate) async fn within<T>(
    most: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let late = || StoreError::unavailable(format!("PostgreSQL did not answer within {} s", most.as_secs()));
    tokio::time::timeout(most, work).await.unwrap_or_else(|_| Err(late()))
}

/// What PostgreSQL answered, as both databases say it.
pub(crate) fn postgres_rows(rows: &[sqlx::postgres::PgRow]) -> Result<Vec<Row>, StoreError> {
    let read = |row: &sqlx::postgres::PgRow| {
        let columns = row.columns().iter().map(|column| {
            let at = column.ordinal();
            let raw = row.try_get_raw(at)?;
            if raw.is_null() {
                return Ok(Value::Null);
            }
            Ok(match raw.type_info().name() {
                "INT8" => Value::Int(row.try_get_unchecked(at)?),
                "INT4" => Value::Int(row.try_get_unchecked::<i32, _>(at)?.into()),
                "TEXT" | "VARCHAR" | "NAME" => Value::Text(row.try_get_unchecked(at)?),
                "BYTEA" => Value::Bytes(row.try_get_unchecked(at)?),
                other => return Err(StoreError::Corrupt(format!("a column of type {other}"))),
            })
        });
        columns.collect::<Result<_, _>>().map(Row::new)
    };
    rows.iter().map(read).collect()
}
