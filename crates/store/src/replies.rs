//! What was answered to requests that carry a key, so that sending one again does nothing twice. Replies are sealed.

use adjutant_core::content::Hash;
use adjutant_core::id::{NodeId, UserId};
use adjutant_core::time::Time;

use crate::queue;
use crate::seal::{Place, Scope};
use crate::value::args;
use crate::{Store, StoreError};

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The key is new, and this request has it now.
    New,
    /// A request has it and is not answered yet, or another request than this one has it.
    Taken {
        /// The hash of the request that has it.
        request: Hash,
    },
    /// A request had it, and whoever was to answer is gone: nobody knows whether it was carried out.
    Lost {
        /// The hash of the request that had it.
        request: Hash,
    },
    /// It was answered.
    Answered {
        /// The hash of the request that has it.
        request: Hash,
        /// The answer.
        reply: Vec<u8>,
    },
}

impl Store {
    /// Takes a key for a request that this node answers, unless one has it; forgets keys from before `oldest`.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a reply does not open.
    pub async fn take_key(
        &self,
        user: UserId,
        key: &str,
        (node, request): (NodeId, Hash),
        now: Time,
        oldest: Time,
    ) -> Result<Reply, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let mut tx = sql.db.begin_work().await?;
        tx.run("DELETE FROM replies WHERE created_at < $1", args![oldest]).await?;
        let text = "INSERT INTO replies (person, key, request, created_at, node) VALUES ($1, $2, $3, $4, $5) \
                    ON CONFLICT (person, key) DO NOTHING";
        if tx.run(text, args![user, key, request, now, node]).await? > 0 {
            tx.commit().await?;
            return Ok(Reply::New);
        }
        // A node whose lease has run out may still answer; until it does, nobody counts on it.
        let text = format!(
            "SELECT request, reply, (SELECT count(*) FROM nodes WHERE nodes.id = replies.node AND nodes.expires > {now}) \
             FROM replies WHERE person = $1 AND key = $2",
            now = queue::now(tx.dialect())
        );
        let row = tx.row(text, args![user, key]).await?;
        tx.commit().await?;
        let mut row = row.ok_or(StoreError::NotFound)?;
        let (request, reply, alive): (Hash, Option<Vec<u8>>, u64) = (row.take()?, row.take()?, row.take()?);
        let Some(reply) = reply else {
            return Ok(if alive > 0 { Reply::Taken { request } } else { Reply::Lost { request } });
        };
        let reply = sql.sealer(Scope::System).await?.open(place(&id(user, key)), reply)?;
        Ok(Reply::Answered { request, reply })
    }

    /// Says that nobody answers the request that has a key: whether it was carried out is not known.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn lose_reply(&self, user: UserId, key: &str) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let text = "UPDATE replies SET node = NULL WHERE person = $1 AND key = $2";
        sql.write_work(text, args![user, key]).await.map(drop)
    }

    /// Keeps the answer to the request that has a key; without one the key is free again.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn keep_reply(&self, user: UserId, key: &str, reply: Option<&[u8]>) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let Some(reply) = reply else {
            let text = "DELETE FROM replies WHERE person = $1 AND key = $2 AND reply IS NULL";
            return sql.write_work(text, args![user, key]).await.map(drop);
        };
        let sealed = sql.sealer(Scope::System).await?.seal(place(&id(user, key)), reply)?;
        let text = "UPDATE replies SET reply = $3 WHERE person = $1 AND key = $2";
        sql.write_work(text, args![user, key, sealed]).await.map(drop)
    }
}

fn id(user: UserId, key: &str) -> String {
    format!("{user}/{key}")
}

const fn place(id: &str) -> Place<'_> {
    Place::Column { table: "replies", column: "reply", id }
}
