//! The search index over notebook files: as clear as the files themselves, and rebuilt from them at any time.

use adjutant_core::id::{NotebookId, WorkspaceId};

use crate::db::{Db, Dialect, Tx};
use crate::row::{IndexState, IndexedFile, SearchHit};
use crate::value::args;
use crate::{Store, StoreError};

/// Files written in one transaction, so that indexing does not hold up the log.
const FILES_PER_COMMIT: usize = 32;
/// Words of a query that count; nobody types more.
const WORDS: usize = 32;
/// Bytes of a text that PostgreSQL indexes: its word lists have a hard limit of one megabyte.
const POSTGRES_TEXT: usize = 512 * 1024;

const SQLITE_SEARCH: &str = "SELECT files.path, snippet(files_text, 1, '[', ']', '…', 16) FROM files_text \
     JOIN files ON files.number = files_text.rowid \
     WHERE files_text MATCH $1 AND files.workspace = $2 AND files.notebook = $3 \
     ORDER BY bm25(files_text, 0.0, 1.0), files.path LIMIT $4";
const POSTGRES_SEARCH: &str = "SELECT path, ts_headline('english', body, words, \
     'StartSel=[,StopSel=],MaxWords=18,MinWords=8,MaxFragments=1,FragmentDelimiter=…') FROM (\
     SELECT path, body, query AS words FROM files, (\
     SELECT CASE numnode(whole) WHEN 0 THEN whole ELSE (whole::text || ':*')::tsquery END AS query \
     FROM plainto_tsquery('english', $1) AS whole) AS asked \
     WHERE workspace = $2 AND notebook = $3 AND files.words @@ query \
     ORDER BY ts_rank(files.words, query) DESC, path LIMIT $4) AS hits";

impl Store {
    /// What the index knows of a notebook.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn index_state(&self, workspace: WorkspaceId, notebook: NotebookId) -> Result<IndexState, StoreError> {
        let sql = sql!(self, memory => memory.index_state(workspace, notebook));
        let text = "SELECT path, size, modified FROM files WHERE workspace = $1 AND notebook = $2";
        let mut state = IndexState::new();
        for mut row in sql.db.scan(text, args![workspace, notebook]).await? {
            state.insert(row.take()?, (row.take()?, row.take()?));
        }
        Ok(state)
    }

    /// Adds files to the index, or replaces what it knew of them.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn index_put(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        files: Vec<IndexedFile>,
    ) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.index_put(workspace, notebook, files));
        for some in files.chunks(FILES_PER_COMMIT) {
            let mut tx = sql.db.begin_work().await?;
            for file in some {
                match tx.dialect() {
                    Dialect::Sqlite => put_sqlite(&mut tx, workspace, notebook, file).await?,
                    Dialect::Postgres => put_postgres(&mut tx, workspace, notebook, file).await?,
                }
            }
            tx.commit().await?;
        }
        Ok(())
    }

    /// Takes files out of the index.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn index_remove(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        paths: Vec<String>,
    ) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.index_remove(workspace, notebook, &paths));
        let mut tx = sql.db.begin_work().await?;
        for path in paths {
            if tx.dialect() == Dialect::Sqlite {
                let text = "DELETE FROM files_text WHERE rowid IN (\
                            SELECT number FROM files WHERE workspace = $1 AND notebook = $2 AND path = $3)";
                tx.run(text, args![workspace, notebook, &path]).await?;
            }
            let text = "DELETE FROM files WHERE workspace = $1 AND notebook = $2 AND path = $3";
            tx.run(text, args![workspace, notebook, &path]).await?;
        }
        tx.commit().await
    }

    /// Files of a notebook that hold all words of the query, best first; of the last one its beginning is enough, because
    /// somebody may still be typing it. The query is only ever words, never a language.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn search(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        query: &str,
        limit: u32,
    ) -> Result<Vec<SearchHit>, StoreError> {
        let sql = sql!(self, memory => memory.search(workspace, notebook, query, limit));
        let words = words(query);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let (text, query) = match sql.db.dialect() {
            Dialect::Sqlite => {
                let quoted: Vec<_> = words.iter().map(|word| format!("\"{}\"", word.replace('"', "\"\""))).collect();
                (SQLITE_SEARCH, format!("place : \"{workspace} {notebook}\" AND body : ({}*)", quoted.join(" AND ")))
            }
            Dialect::Postgres => (POSTGRES_SEARCH, words.join(" ")),
        };
        let mut hits = Vec::new();
        for mut row in sql.db.scan(text, args![query, workspace, notebook, limit]).await? {
            hits.push(SearchHit { path: row.take()?, snippet: row.take()? });
        }
        Ok(hits)
    }
}

/// Has the index of SQLite overwrite what is taken out of it: a word that is only marked as deleted stays in the file.
pub(crate) async fn overwrite_index(db: &Db) -> Result<(), StoreError> {
    let set = "SELECT v FROM files_text_config WHERE k = 'secure-delete'";
    match db.dialect() {
        Dialect::Sqlite if db.read_one(set, vec![]).await?.is_none() => {
            let text = "INSERT INTO files_text (files_text, rank) VALUES ('secure-delete', 1)";
            db.write(text, vec![]).await.map(drop)
        }
        Dialect::Sqlite | Dialect::Postgres => Ok(()),
    }
}

/// The words of a query: pieces between blanks that hold a letter or a digit.
pub(crate) fn words(query: &str) -> Vec<&str> {
    let pieces = query.split(|c: char| c.is_whitespace() || c == '\0');
    pieces.filter(|word| word.chars().any(char::is_alphanumeric)).take(WORDS).collect()
}

async fn put_sqlite(
    tx: &mut Tx,
    workspace: WorkspaceId,
    notebook: NotebookId,
    file: &IndexedFile,
) -> Result<(), StoreError> {
    let text = "INSERT INTO files (workspace, notebook, path, size, modified) VALUES ($1, $2, $3, $4, $5) \
                ON CONFLICT (workspace, notebook, path) DO UPDATE SET size = excluded.size, \
                modified = excluded.modified RETURNING number";
    let row = tx.row(text, args![workspace, notebook, &file.path, file.size, file.modified]).await?;
    let number: i64 = row.ok_or(StoreError::NotFound)?.take()?;
    tx.run("DELETE FROM files_text WHERE rowid = $1", args![number]).await?;
    let text = "INSERT INTO files_text (rowid, place, body) VALUES ($1, $2, $3)";
    tx.run(text, args![number, format!("{workspace} {notebook}"), &file.text]).await.map(drop)
}

async fn put_postgres(
    tx: &mut Tx,
    workspace: WorkspaceId,
    notebook: NotebookId,
    file: &IndexedFile,
) -> Result<(), StoreError> {
    // Its text has no NUL.
    let body = file.text.replace('\0', " ");
    let indexed = &body[..body.floor_char_boundary(POSTGRES_TEXT)];
    let text = "INSERT INTO files (workspace, notebook, path, size, modified, body, words) \
                VALUES ($1, $2, $3, $4, $5, $6, to_tsvector('english', $7)) \
                ON CONFLICT (workspace, notebook, path) DO UPDATE SET size = excluded.size, \
                modified = excluded.modified, body = excluded.body, words = excluded.words";
    let args = args![workspace, notebook, &file.path, file.size, file.modified, &body, indexed];
    tx.run(text, args).await.map(drop)
}
