//! Erasing: content goes, the chain stays.

use adjutant_core::run::chain::Head;

use adjutant_core::time::Time;
use adjutant_store::row::{AuditFilter, AuditRow};

use crate::fixture::*;
use crate::world::World;

fn entry(run: &Run, path: &str, time: Time) -> AuditRow {
    AuditRow {
        stream: run.stream(),
        seq: run.head.seq + 1,
        time,
        kind: "call_ended".into(),
        actor: None,
        agent: None,
        run: Some(run.id),
        tool: Some("write_file".into()),
        target: Some(path.into()),
        verdict: Some("allow".into()),
        is_error: false,
    }
}

stories! {
    async fn erasing_a_stream_keeps_its_chain_valid_and_spares_what_others_use(world: &World) {
        let home = Home::new(&world.store).await;
        let mut erased = home.started(&world.store).await;
        let mut kept = home.started(&world.store).await;
        let (own, shared, other) = (block("only mine"), block("shared by both"), block("only the other's"));
        let mut append = erased.say(&["a secret", "another"]);
        append.blocks = vec![own.clone(), shared.clone()];
        append.approvals = vec![approval(&home, erased.id, "pending")];
        let card = append.approvals[0].id;
        append.calls = vec![erased.call()];
        append.audit = vec![entry(&erased, "/erased.md", at(1))];
        erased.head = world.store.append(append).await.unwrap();
        let mut append = kept.say(&["keeps this"]);
        append.blocks = vec![shared.clone(), other.clone()];
        append.audit = vec![entry(&kept, "/kept.md", at(2))];
        kept.head = world.store.append(append).await.unwrap();

        assert_eq!(world.store.erase_bodies(home.workspace, erased.stream()).await.unwrap(), 3);
        assert_eq!(erased.texts(&world.store).await, ["(erased)", "(erased)", "(erased)"], "and the chain verified");
        let blocks = world.store.blocks(home.workspace, &[own.hash, shared.hash, other.hash]).await.unwrap();
        assert!(!blocks.contains_key(&own.hash) && blocks[&shared.hash] == shared.bytes && blocks[&other.hash] == other.bytes);
        assert_eq!(world.store.approval(home.workspace, card).await.unwrap().unwrap().card, "{}");
        assert_eq!(erased.row(&world.store).await.state.summary, "{}");
        assert_eq!(kept.texts(&world.store).await, ["run started", "keeps this"]);
        assert_eq!(world.store.calls(home.workspace, erased.id).await.unwrap()[0].target, None);
        let entries = world.store.audit(Some(home.workspace), &AuditFilter::default(), 9).await.unwrap();
        let paths: Vec<_> = entries.iter().map(|row| (row.run, row.target.as_deref())).collect();
        assert_eq!(paths, [(Some(kept.id), Some("/kept.md")), (Some(erased.id), None)]);

        assert_eq!(world.store.erase_bodies(home.workspace, erased.stream()).await.unwrap(), 0, "erased is erased");
        erased.said(&world.store, &["life goes on"]).await.unwrap();
        let entries = world.store.events(home.workspace, erased.stream(), 0, 100).await.unwrap();
        assert!(entries.iter().try_fold(Head::START, |head, entry| entry.follows(head)).is_ok());
        assert_eq!(world.store.erase_bodies(home.workspace, kept.stream()).await.unwrap(), 2);
        assert!(world.store.blocks(home.workspace, &[shared.hash]).await.unwrap().is_empty(), "now nobody uses it");
    }

    async fn an_erased_block_can_be_stored_again(world: &World) {
        let home = Home::new(&world.store).await;
        let mut run = home.started(&world.store).await;
        let text = block("said twice");
        for _ in 0..2 {
            let mut append = run.say(&["refers to it"]);
            append.blocks = vec![text.clone()];
            run.head = world.store.append(append).await.unwrap();
            assert_eq!(world.store.blocks(home.workspace, &[text.hash]).await.unwrap().len(), 1);
            world.store.erase_bodies(home.workspace, run.stream()).await.unwrap();
            assert!(world.store.blocks(home.workspace, &[text.hash]).await.unwrap().is_empty());
        }
    }
}
