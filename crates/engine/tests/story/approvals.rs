//! Runs that ask.

use adjutant_core::run::event::Decision;
use adjutant_core::run::status::Status;
use adjutant_engine::{Agent, AgentBuilder};

fn demo(folder: &std::path::Path, data: &std::path::Path) -> AgentBuilder {
    for (path, text) in adjutant_engine::models::demo::sample_files() {
        let file = folder.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    Agent::builder("Guide").notebook(folder, ["/"]).toolsets(["files", "kv"]).can_write().data(data)
}

#[tokio::test]
async fn the_demo_asks_before_it_writes_and_writes_once_it_may() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let before = || std::fs::read_to_string(folder.path().join("todo.md")).unwrap();
    let agent = demo(folder.path(), data.path()).build().await.unwrap();
    let untouched = before();
    let report = agent.run("tidy the welcome notes").await.unwrap();
    assert_eq!(report.status, Status::WaitingApproval, "{report:#?}");
    assert_eq!(before(), untouched);
    agent.decide(report.pending_approvals[0], Decision::Approve).await.unwrap();
    let report = agent.resume(report.id).await.unwrap();
    assert_eq!(report.status, Status::Completed, "{report:#?}");
    assert_ne!(before(), untouched);
    assert_eq!(report.files_modified, ["/todo.md"]);
    let replay = agent.engine().replay(agent.workspace(), report.id).await.unwrap();
    assert!(replay.divergences.is_empty(), "{replay:#?}");
    agent.engine().verify_run(agent.workspace(), report.id).await.unwrap();
}
