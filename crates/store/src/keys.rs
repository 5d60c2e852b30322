//! The data keys: made with a tenant, wrapped by the master key, unwrapped once and kept. The instance's own key is also
//! the check value: a master key that does not open it is the wrong one.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use zeroize::Zeroizing;

use crate::StoreError;
use crate::db::{Db, Dialect, Tx};
use crate::migrate;
use crate::queue::now;
use crate::seal::{Key, MasterKey, Place, Scope, Sealing, fill_random};
use crate::value::args;

const GENERATION: u16 = 1;
const SELECT: &str = "SELECT wrapped FROM data_keys WHERE workspace = $1 AND generation = $2";

/// Every key in use.
pub(crate) enum Keyring {
    Off,
    On { master: Key, known: RwLock<HashMap<Scope, Arc<Key>>> },
}

/// What seals and opens the content of one scope.
#[derive(Clone)]
pub(crate) enum Sealer {
    Off,
    On(Arc<Key>),
    /// The key was destroyed: nothing is sealed any more, and nothing that was opens.
    Gone,
}

/// The data keys as another master key wraps them. Holds nothing that opens without one.
#[derive(Debug, Clone)]
pub struct Rewrapped(Vec<WrappedKey>);

impl Rewrapped {
    /// How many keys there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.0.len()
    }
}

#[derive(Debug, Clone)]
struct WrappedKey {
    scope: String,
    generation: u64,
    was: Vec<u8>,
    wrapped: Vec<u8>,
}

/// The data key of a scope that is to be made, as the master key wraps it, and the instance's own as it was then.
#[derive(Debug, Clone)]
pub(crate) struct FreshKey(Option<(Vec<u8>, Vec<u8>)>);

impl Sealer {
    pub(crate) fn seal(&self, place: Place<'_>, plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::Off => Ok(plain.to_vec()),
            Self::On(key) => key.seal(place, plain),
            Self::Gone => Err(StoreError::NotFound),
        }
    }

    pub(crate) fn open(&self, place: Place<'_>, stored: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::Off => Ok(stored),
            Self::On(key) => key.open(place, stored),
            Self::Gone => Err(StoreError::NotFound),
        }
    }

    /// Whether what was sealed counts as erased.
    pub(crate) const fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    /// What can be compared with another of its kind and tells nobody what it was made from who does not have the key.
    pub(crate) fn mark(&self, text: &str) -> String {
        let mark = match self {
            Self::Off | Self::Gone => blake3::hash(text.as_bytes()),
            Self::On(key) => key.mark(text),
        };
        mark.to_hex().to_string()
    }

    /// A sealed column of text.
    pub(crate) fn open_text(&self, place: Place<'_>, stored: Vec<u8>) -> Result<String, StoreError> {
        String::from_utf8(self.open(place, stored)?)
            .map_err(|_| StoreError::Corrupt(format!("the content of {place} is no text")))
    }
}

impl Keyring {
    pub(crate) fn new(sealing: &Sealing) -> Self {
        match sealing {
            Sealing::Off => Self::Off,
            Sealing::On(master) => Self::On { master: Key::master(master), known: RwLock::default() },
        }
    }

    /// The sealer of a scope; [`StoreError::NotFound`] when there is no such tenant, or its key was destroyed.
    pub(crate) async fn sealer(&self, db: &Db, scope: Scope) -> Result<Sealer, StoreError> {
        let Self::On { master, known } = self else { return Ok(Sealer::Off) };
        if let Some(key) = known.read().unwrap_or_else(PoisonError::into_inner).get(&scope) {
            return Ok(Sealer::On(Arc::clone(key)));
        }
        let row = db.read_one(SELECT, args![scope, u64::from(GENERATION)]).await?;
        let wrapped: Vec<u8> = row.ok_or(StoreError::NotFound)?.take()?;
        let key = Arc::new(unwrap(master, scope, wrapped)?);
        known.write().unwrap_or_else(PoisonError::into_inner).insert(scope, Arc::clone(&key));
        Ok(Sealer::On(key))
    }

    /// Keeps the key of a scope no longer that was taken away.
    pub(crate) fn forget(&self, scope: Scope) {
        if let Self::On { known, .. } = self {
            known.write().unwrap_or_else(PoisonError::into_inner).remove(&scope);
        }
    }

    /// A data key for a scope that is to be made. Nothing is changed yet.
    pub(crate) async fn fresh(&self, db: &Db, scope: Scope) -> Result<FreshKey, StoreError> {
        let Self::On { master, .. } = self else { return Ok(FreshKey(None)) };
        let row = db.read_one(SELECT, args![Scope::System, u64::from(GENERATION)]).await?;
        let beside: Vec<u8> = row.ok_or(StoreError::WrongKey)?.take()?;
        unwrap(master, Scope::System, beside.clone())?;
        Ok(FreshKey(Some((beside, wrap_new(master, scope)?))))
    }

    /// Every data key as another master key wraps it. Nothing is changed yet.
    pub(crate) async fn rewrap(&self, db: &Db, new: &MasterKey) -> Result<Rewrapped, StoreError> {
        let Self::On { master, .. } = self else {
            return Err(StoreError::Conflict("nothing is sealed here, so there is no master key to replace".into()));
        };
        let new = Key::master(new);
        let rows = db.read("SELECT workspace, generation, wrapped FROM data_keys ORDER BY workspace", args![]).await?;
        let rewrapped = rows.into_iter().map(|mut row| {
            let (scope, generation, was): (String, u64, Vec<u8>) = (row.take()?, row.take()?, row.take()?);
            let bytes = Zeroizing::new(master.open(place(&scope), was.clone()).map_err(|_| StoreError::WrongKey)?);
            let wrapped = new.seal(place(&scope), &bytes)?;
            Ok(WrappedKey { scope, generation, was, wrapped })
        });
        rewrapped.collect::<Result<_, StoreError>>().map(Rewrapped)
    }

    pub(crate) const fn is_on(&self) -> bool {
        matches!(self, Self::On { .. })
    }
}

/// Checks, inside the transaction that opens the database, that it is sealed as the caller says; a new one is marked.
pub(crate) async fn check(tx: &mut Tx, sealing: &Sealing) -> Result<(), StoreError> {
    let recorded = migrate::get(tx, "sealing").await?;
    match (recorded.as_deref(), sealing) {
        (None, Sealing::Off) => migrate::put(tx, "sealing", "off").await,
        (None, Sealing::On(master)) => {
            migrate::put(tx, "sealing", "on").await?;
            insert(tx, Scope::System, wrap_new(&Key::master(master), Scope::System)?).await
        }
        (Some("off"), Sealing::Off) => Ok(()),
        (Some("off"), Sealing::On(_)) => {
            Err(StoreError::Conflict("this database was made with encryption off and cannot be used with it on".into()))
        }
        (Some("on"), Sealing::Off) => Err(StoreError::WrongKey),
        (Some("on"), Sealing::On(master)) => {
            let row = tx.row(SELECT, args![Scope::System, u64::from(GENERATION)]).await?;
            let wrapped = row.ok_or_else(|| StoreError::Corrupt("the check value is missing".into()))?.take()?;
            unwrap(&Key::master(master), Scope::System, wrapped).map(drop)
        }
        (Some(other), _) => Err(StoreError::Corrupt(format!("unknown sealing `{other}`"))),
    }
}

/// Puts every data key in place as the new master key wraps it, in the transaction that records it: all of them, or none.
pub(crate) async fn replace_master(tx: &mut Tx, Rewrapped(keys): &Rewrapped) -> Result<(), StoreError> {
    let changed =
        || StoreError::Conflict("a workspace was made or taken away meanwhile; the master key is as it was".into());
    for key in keys {
        let sql = "UPDATE data_keys SET wrapped = $4 WHERE workspace = $1 AND generation = $2 AND wrapped = $3";
        let args = args![key.scope.as_str(), key.generation, key.was.clone(), key.wrapped.clone()];
        if tx.run(sql, args).await? != 1 {
            return Err(changed());
        }
    }
    let all: u64 = count(tx, "SELECT count(*) FROM data_keys".to_owned()).await?;
    if all != u64::try_from(keys.len()).unwrap_or(u64::MAX) {
        return Err(changed());
    }
    // Each holds the master key that it was started with.
    let living = format!("SELECT count(*) FROM nodes WHERE expires > {}", now(tx.dialect()));
    if count(tx, living).await? > 0 {
        return Err(StoreError::Conflict("a node works on this database; the master key is as it was".into()));
    }
    Ok(())
}

async fn count(tx: &mut Tx, sql: String) -> Result<u64, StoreError> {
    tx.row(sql, args![]).await?.map_or(Ok(0), |mut row| row.take())
}

/// Puts the data key of a new scope in place, in the transaction that makes it.
pub(crate) async fn put_fresh(tx: &mut Tx, scope: Scope, FreshKey(key): &FreshKey) -> Result<(), StoreError> {
    let Some((beside, wrapped)) = key else { return Ok(()) };
    // Another process may have replaced the master key meanwhile: what the old one wraps, nobody could open.
    let sql = match tx.dialect() {
        Dialect::Sqlite => SELECT.to_owned(),
        Dialect::Postgres => format!("{SELECT} FOR SHARE"),
    };
    let row = tx.row(sql, args![Scope::System, u64::from(GENERATION)]).await?;
    let system: Vec<u8> = row.ok_or(StoreError::WrongKey)?.take()?;
    if system != *beside {
        return Err(StoreError::WrongKey);
    }
    insert(tx, scope, wrapped.clone()).await
}

async fn insert(tx: &mut Tx, scope: Scope, wrapped: Vec<u8>) -> Result<(), StoreError> {
    let sql = "INSERT INTO data_keys (workspace, generation, wrapped) VALUES ($1, $2, $3)";
    tx.run(sql, args![scope, u64::from(GENERATION), wrapped]).await.map(drop)
}

fn wrap_new(master: &Key, scope: Scope) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    fill_random(&mut *bytes)?;
    let id = scope.to_string();
    master.seal(place(&id), &*bytes)
}

fn unwrap(master: &Key, scope: Scope, wrapped: Vec<u8>) -> Result<Key, StoreError> {
    let id = scope.to_string();
    let bytes = Zeroizing::new(master.open(place(&id), wrapped).map_err(|_| StoreError::WrongKey)?);
    let bytes: &[u8; 32] = bytes.as_slice().try_into().map_err(|_| StoreError::WrongKey)?;
    Ok(Key::new(scope, GENERATION, bytes))
}

const fn place(id: &str) -> Place<'_> {
    Place::Column { table: "data_keys", column: "wrapped", id }
}
