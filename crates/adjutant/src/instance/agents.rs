//! The agent files of a data directory: each becomes an agent, a changed one its next version, and an agent whose file was
//! taken away is switched off.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::run::event::Actor;
use adjutant_engine::tools::Registry;
use adjutant_engine::{Engine, Home};

use crate::agent_file::{self, AgentFile, Known, Problem};
use crate::failure::Failure;

const FOLDER: &str = "agents";
/// Which agents came from files, remembered so that a file that is gone can be told from one that never was.
const FROM_FILES: &str = "agents_from_files";

/// Which agents were imported since, one short name a line, in the folder of the files: a server that has the database is not
/// told whether an agent it saves is kept as a file.
const IMPORTED: &str = ".imported";

/// Notes that an agent is about to get a file, so that it is switched off if the file is gone at the next start.
pub(crate) fn remember(data: &Path, slug: &str) -> Result<(), Failure> {
    let path = data.join(FOLDER).join(IMPORTED);
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let written =
        opened.and_then(|mut file| file.write_all(format!("{slug}\n").as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|error| super::unusable(&path, &error))
}

/// The names that files may use.
pub(crate) fn known(tools: &Registry) -> Known {
    let toolsets: BTreeSet<_> = tools.iter().map(|tool| tool.spec().toolset.to_string()).collect();
    Known {
        tools: tools.iter().map(|tool| tool.spec().name().to_owned()).collect(),
        toolsets: toolsets.into_iter().collect(),
    }
}

/// The agent files of a folder, in the order of their names.
pub(crate) fn files_of(folder: &Path) -> Result<Vec<PathBuf>, std::io::Error> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "md") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Loads the agent files of a data directory. What is wrong with some does not hold up the others; it is handed back.
pub(crate) async fn load(engine: &Engine, home: Home, data: &Path) -> Result<Vec<Problem>, Failure> {
    let folder = data.join(FOLDER);
    let paths = match files_of(&folder) {
        Ok(paths) => paths,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(super::unusable(&folder, &error)),
    };
    let (mut problems, mut files) = (Vec::new(), BTreeMap::<String, AgentFile>::new());
    let mut broken = BTreeSet::new();
    // A tool that is switched off is a known word all the same.
    let known = known(&super::tools());
    for path in paths {
        match agent_file::read(&path, &known) {
            Ok(file) => match files.get(&file.config.slug) {
                None => {
                    files.insert(file.config.slug.clone(), file);
                }
                Some(first) => {
                    let detail = format!("the agent `{}` is in {} already", file.config.slug, first.path.display());
                    problems.push(Problem { file: path, line: 1, detail });
                }
            },
            Err(found) => {
                broken.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
                problems.extend(found);
            }
        }
    }
    for file in files.values() {
        match save(engine, home, file).await {
            // Only here it turns out whom it names: the agent stays as it was.
            Err(failure) if failure.code == "validation_failed" => {
                let detail = failure.problems.join("; ");
                problems.push(Problem { file: file.path.clone(), line: 1, detail });
            }
            other => other?,
        }
    }
    let imported = folder.join(IMPORTED);
    let noted = std::fs::read_to_string(&imported).unwrap_or_default();
    forget(engine, home, &files, &broken, &noted).await?;
    if !noted.is_empty() {
        std::fs::remove_file(&imported).map_err(|error| super::unusable(&imported, &error))?;
    }
    Ok(problems)
}

/// Saves a file's agent, if it is not what is saved already.
pub(crate) async fn save(engine: &Engine, home: Home, file: &AgentFile) -> Result<(), Failure> {
    let known = engine.store().agent_by_slug(home.workspace, &file.config.slug).await?;
    let people = match &known {
        Some(row) => engine.named_people(home.workspace, &file.spec, &row.people).await? == row.people,
        None => false,
    };
    let same = known.as_ref().is_some_and(|row| {
        people
            && row.active == file.config.is_active
            && serde_json::from_str::<AgentConfig>(&row.spec).is_ok_and(|saved| saved == file.config)
    });
    if !same {
        let version = known.map_or(0, |row| row.version);
        engine.save_agent(home.workspace, Actor::User(home.user), file.spec.clone(), version).await?;
    }
    Ok(())
}

/// Switches off the agents whose files are gone, where no other node may have them. A file that is there and broken keeps its agent as it was; what
/// drives runs without a server refuses to as long as it is broken.
async fn forget(
    engine: &Engine,
    home: Home,
    files: &BTreeMap<String, AgentFile>,
    broken: &BTreeSet<String>,
    noted: &str,
) -> Result<(), Failure> {
    let remembered = engine.store().meta_get(FROM_FILES).await?.unwrap_or_default();
    let remembered: BTreeSet<String> = serde_json::from_slice(&remembered).unwrap_or_default();
    let before: BTreeSet<String> = remembered.iter().cloned().chain(noted.lines().map(str::to_owned)).collect();
    let mut now: BTreeSet<String> = files.keys().chain(broken).cloned().collect();
    if engine.store().is_shared() {
        // Another node may have the file: what is missing here is not gone.
        now.extend(before.iter().cloned());
    }
    for slug in before.difference(&now) {
        let Some(row) = engine.store().agent_by_slug(home.workspace, slug).await? else { continue };
        if row.active {
            engine.switch_agent(Actor::User(home.user), row, false).await?;
            tracing::warn!(agent = %slug, "its file is gone; the agent is switched off");
        }
    }
    if remembered != now {
        let list = serde_json::to_vec(&now).unwrap_or_default();
        engine.store().meta_set(FROM_FILES, &list).await?;
    }
    Ok(())
}
