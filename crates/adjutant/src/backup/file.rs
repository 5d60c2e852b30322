//! The form of the file: a mark, frames of a kind and a length, and at the end the hash of all that came before. Whatever is
//! cut short or changed by accident is found before any of it is used.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use adjutant_engine::store::Batch;
use serde::{Deserialize, Serialize};

use super::Progress;
use crate::failure::{Exit, Failure};

const MARK: &[u8; 16] = b"adjutant-backup\n";
const FORMAT: u32 = 1;
const HASH: u64 = 32;
/// Bytes read at a time.
const PIECE: usize = 1 << 20;

/// The first frame: what the file is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct About {
    format: u32,
    /// The program that wrote it.
    pub(crate) version: String,
    /// When its moment was.
    pub(crate) made_at: String,
    /// The schema of its rows.
    pub(crate) schema: u64,
    /// Whether a master key is needed to read it.
    pub(crate) sealed: bool,
    /// Rows it is going to hold.
    pub(crate) rows: u64,
    /// Folders outside the data directory, which are not in it.
    pub(crate) linked: Vec<String>,
    /// Keys of providers that were left out.
    pub(crate) provider_keys: u64,
}

/// What is said of a new file.
pub(crate) struct New {
    pub(crate) made_at: String,
    pub(crate) schema: u64,
    pub(crate) sealed: bool,
    pub(crate) rows: u64,
    pub(crate) linked: Vec<String>,
    pub(crate) provider_keys: u64,
}

impl New {
    pub(crate) fn about(self) -> About {
        let Self { made_at, schema, sealed, rows, linked, provider_keys } = self;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        About { format: FORMAT, version, made_at, schema, sealed, rows, linked, provider_keys }
    }
}

/// The last frame: how much there was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// Rows of the database.
    pub(crate) rows: u64,
    /// Files.
    pub(crate) files: u64,
    /// Bytes of the files.
    pub(crate) bytes: u64,
}

/// A file or folder of the data directory, by its path there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) path: String,
    /// Milliseconds since 1970.
    pub(super) modified: Option<u64>,
}

/// One part of the file.
pub(super) enum Frame {
    About(Box<About>),
    Rows(Batch),
    Folder(Entry),
    File(Entry),
    /// More of the file that was named last.
    Data(Vec<u8>),
    End(Summary),
}

impl Frame {
    fn parts(&self) -> std::io::Result<(u8, Vec<u8>)> {
        Ok(match self {
            Self::About(about) => (b'a', serde_json::to_vec(about)?),
            Self::Rows(batch) => (b'r', batch.to_bytes()),
            Self::Folder(entry) => (b'd', serde_json::to_vec(entry)?),
            Self::File(entry) => (b'f', serde_json::to_vec(entry)?),
            Self::Data(bytes) => (b'b', bytes.clone()),
            Self::End(summary) => (b'e', serde_json::to_vec(summary)?),
        })
    }

    fn read(kind: u8, bytes: Vec<u8>) -> Option<Self> {
        Some(match kind {
            b'a' => Self::About(serde_json::from_slice(&bytes).ok()?),
            b'r' => Self::Rows(Batch::from_bytes(&bytes).ok()?),
            b'd' => Self::Folder(serde_json::from_slice(&bytes).ok()?),
            b'f' => Self::File(serde_json::from_slice(&bytes).ok()?),
            b'b' => Self::Data(bytes),
            b'e' => Self::End(serde_json::from_slice(&bytes).ok()?),
            _ => return None,
        })
    }
}

/// A file that is being written.
pub(super) struct Writer {
    out: BufWriter<File>,
    hasher: blake3::Hasher,
}

impl Writer {
    pub(super) fn begin(file: File) -> std::io::Result<Self> {
        let mut writer = Self { out: BufWriter::with_capacity(PIECE, file), hasher: blake3::Hasher::new() };
        writer.raw(MARK)?;
        Ok(writer)
    }

    fn raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hasher.update(bytes);
        self.out.write_all(bytes)
    }

    pub(super) fn put(&mut self, frame: &Frame) -> std::io::Result<()> {
        let (kind, bytes) = frame.parts()?;
        self.raw(&[kind])?;
        self.raw(&(bytes.len() as u64).to_le_bytes())?;
        self.raw(&bytes)
    }

    /// The hash, and everything onto the disk. Says how large the file is.
    pub(super) fn finish(mut self) -> std::io::Result<u64> {
        let hash = self.hasher.finalize();
        self.out.write_all(hash.as_bytes())?;
        let file = self.out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }
}

/// A file that was found whole.
pub(super) struct Reader {
    input: BufReader<File>,
    left: u64,
    name: String,
}

impl Reader {
    /// Reads the file once to its end and checks that it is what was written; only then can it be read.
    pub(super) fn check(path: &Path, progress: Progress<'_>) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let unreadable =
            |error: std::io::Error| Failure::usage(format!("{name} cannot be read: {error}. Nothing was restored."));
        let mut file = File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        let mut mark = [0; MARK.len()];
        if size < MARK.len() as u64 + HASH || file.read_exact(&mut mark).is_err() || mark != *MARK {
            return Err(Failure::usage(format!("{name} is not a backup of Adjutant. Nothing was restored.")));
        }
        let (mut hasher, mut piece) = (blake3::Hasher::new(), vec![0; PIECE]);
        hasher.update(&mark);
        let mut done = MARK.len() as u64;
        while done < size - HASH {
            let wanted = usize::try_from(size - HASH - done).unwrap_or(PIECE).min(PIECE);
            file.read_exact(&mut piece[..wanted]).map_err(unreadable)?;
            hasher.update(&piece[..wanted]);
            done += wanted as u64;
            progress("checking", done, size);
        }
        let mut hash = [0; HASH as usize];
        file.read_exact(&mut hash).map_err(unreadable)?;
        if hasher.finalize() != hash {
            return Err(damaged(&name, "its end or its content is not what was written"));
        }
        file.seek(SeekFrom::Start(MARK.len() as u64)).map_err(unreadable)?;
        Ok(Self { input: BufReader::with_capacity(PIECE, file), left: size - HASH - MARK.len() as u64, name })
    }

    /// The next part; none after the last.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, Failure> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut head = [0; 9];
        let mut size = [0; 8];
        self.input.read_exact(&mut head).map_err(|error| self.wrong(&error.to_string()))?;
        size.copy_from_slice(&head[1..]);
        let size = u64::from_le_bytes(size);
        self.left =
            self.left.checked_sub(9 + size).ok_or_else(|| self.wrong("a part of it is longer than the file"))?;
        let mut bytes = vec![0; usize::try_from(size).map_err(|_| self.wrong("a part of it is too long"))?];
        self.input.read_exact(&mut bytes).map_err(|error| self.wrong(&error.to_string()))?;
        let frame = Frame::read(head[0], bytes);
        frame.map(Some).ok_or_else(|| self.wrong("a part of it is of a kind that this program does not know"))
    }

    /// What the file is: its first part.
    pub(super) fn about(&mut self) -> Result<About, Failure> {
        match self.next()? {
            Some(Frame::About(about)) if about.format == FORMAT => Ok(*about),
            Some(Frame::About(about)) => {
                let message = format!("{} has the form {}, which this program does not know.", self.name, about.format);
                Err(Failure::usage(format!("{message} Nothing was restored.")).hint("use the version that wrote it"))
            }
            _ => Err(self.wrong("it does not say what it is")),
        }
    }

    pub(super) fn wrong(&self, why: &str) -> Failure {
        damaged(&self.name, why)
    }
}

/// A file that is not what was written.
pub(crate) fn damaged(name: &str, why: &str) -> Failure {
    Failure::new(Exit::Broken, "backup_damaged", format!("{name} is damaged: {why}. Nothing was restored."))
        .hint("use another copy of it, or an older backup")
}
