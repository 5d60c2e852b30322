//! The first start: it ends with the same home, wherever the process died on the way there.

use std::sync::Arc;

use adjutant_core::guard::path::NotePath;
use adjutant_core::id::WorkspaceId;
use adjutant_engine::{Engine, EngineError, Env, NewLink, Parts, Unpriced};
use adjutant_models::Model;
use adjutant_models::demo::{Demo, sample_files};
use adjutant_store::row::WorkspaceRow;
use adjutant_store::{Durability, MasterKey, Sealing, Store};
use adjutant_tools::Registry;
use tempfile::TempDir;

async fn engine(data: &TempDir) -> Engine {
    let sealing = Sealing::On(MasterKey::new([7; 32]));
    let store = Store::open_sqlite(&data.path().join("adjutant.db"), Durability::Full, sealing).await.unwrap();
    Engine::new(Parts {
        store,
        env: Env::system(),
        models: Arc::new(|_: &str| Ok(Arc::new(Demo::default()) as Arc<dyn Model>)),
        tools: Registry::builtin(),
        notebooks: data.path().join("notebooks"),
        default_model: "demo/guide".to_owned(),
        connector: adjutant_tools::net::Connector::default(),
        user_rate: None,
        max_runs: adjutant_core::limits::RUNS_PER_NODE,
        unpriced: Unpriced::Allow,
    })
    .unwrap()
}

/// As far as the shortest first start got.
async fn empty_workspace(engine: &Engine) -> WorkspaceId {
    let row = WorkspaceRow::new(engine.env().id(), "home", "Home", engine.env().now());
    engine.store().create_workspace(&row).await.unwrap();
    row.id
}

fn sample(n: usize) -> NotePath {
    NotePath::parse(sample_files()[n].0).unwrap()
}

async fn assert_furnished(engine: &Engine) {
    let home = engine.home().await.unwrap();
    let notebooks = engine.store().notebooks(home.workspace).await.unwrap();
    assert_eq!(notebooks.iter().map(|row| row.slug.as_str()).collect::<Vec<_>>(), ["welcome"]);
    let files = engine.notebook(home.workspace, notebooks[0].id).await.unwrap().files;
    for (path, _) in sample_files() {
        files.read(&NotePath::parse(path).unwrap()).unwrap();
    }
    engine.find_agent(home.workspace, "guide").await.unwrap();
}

#[tokio::test]
async fn a_first_start_that_died_with_an_empty_workspace_is_finished_by_the_next() {
    let data = TempDir::new().unwrap();
    let engine = engine(&data).await;
    empty_workspace(&engine).await;
    assert_furnished(&engine).await;
}

#[tokio::test]
async fn a_first_start_that_died_among_its_samples_is_finished_and_overwrites_nothing() {
    let data = TempDir::new().unwrap();
    let engine = engine(&data).await;
    let workspace = empty_workspace(&engine).await;
    let notebook = engine.create_notebook(workspace, engine.env().id(), "welcome").await.unwrap();
    let files = engine.notebook(workspace, notebook).await.unwrap().files;
    files.create(&sample(0), b"mine").unwrap();
    assert_furnished(&engine).await;
    assert_eq!(files.read(&sample(0)).unwrap().bytes, b"mine");
}

#[tokio::test]
async fn what_a_person_removed_from_the_home_is_not_made_again() {
    let data = TempDir::new().unwrap();
    let engine = engine(&data).await;
    let home = engine.home().await.unwrap();
    let notebook = engine.store().notebooks(home.workspace).await.unwrap().remove(0);
    let files = engine.notebook(home.workspace, notebook.id).await.unwrap().files;
    let file = files.read(&sample(1)).unwrap();
    files.delete(&sample(1), file.hash).unwrap();
    assert_eq!(engine.home().await.unwrap(), home);
    assert!(files.read(&sample(1)).is_err());
}

#[tokio::test]
async fn a_folder_is_linked_only_apart_from_what_adjutant_keeps_and_only_once() {
    let (data, mine) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let engine = engine(&data).await;
    let home = engine.home().await.unwrap();
    let notes = mine.path().join("My Notes");
    std::fs::create_dir_all(notes.join("deep")).unwrap();
    std::fs::write(notes.join("a.md"), "mine").unwrap();
    std::os::unix::fs::symlink(data.path(), mine.path().join("way-in")).unwrap();
    let link = async |folder: &std::path::Path, slug: Option<&str>| {
        let (folder, slug) = (folder.to_owned(), slug.map(str::to_owned));
        let own = vec![data.path().to_owned()];
        engine.link_notebook(home.workspace, home.user, NewLink { folder, slug, own }).await
    };
    let inside = data.path().join("notebooks");
    let above = data.path().parent().unwrap();
    let (way, file, gone) = (mine.path().join("way-in"), notes.join("a.md"), mine.path().join("gone"));
    let relative = std::path::Path::new("My Notes");
    for folder in [data.path(), &inside, above, std::path::Path::new("/"), &way, &file, &gone, relative] {
        assert!(matches!(link(folder, None).await, Err(EngineError::Invalid(_))), "{}", folder.display());
    }
    assert!(matches!(link(&notes, Some("Not A Name")).await, Err(EngineError::Invalid(_))));
    assert!(matches!(link(&notes, Some("welcome")).await, Err(EngineError::Taken { .. })));
    assert_eq!(engine.store().notebooks(home.workspace).await.unwrap().len(), 1, "a refused folder was linked");

    let row = link(&notes.join("deep/.."), None).await.unwrap();
    assert_eq!((row.slug.as_str(), row.linked.as_deref()), ("my-notes", notes.canonicalize().unwrap().to_str()));
    let files = engine.notebook(home.workspace, row.id).await.unwrap().files;
    assert_eq!(files.read(&NotePath::parse("/a.md").unwrap()).unwrap().bytes, b"mine");
    assert!(matches!(link(&notes, Some("again")).await, Err(EngineError::Taken { .. })));
    let recorded = engine.audit_log(adjutant_engine::AuditLog::Workspace(home.workspace)).await.unwrap();
    let told = recorded.iter().filter(|entry| format!("{:?}", entry.event).contains("my-notes")).count();
    assert_eq!(told, 1, "what was linked is recorded once, what was refused never");
}
