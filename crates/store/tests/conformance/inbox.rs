//! The inbox projection, and projections rebuilt.

use adjutant_store::row::{ApprovalFilter, ApprovalRow, CallEnd, CallRow, Order, RunRow};

use crate::fixture::*;
use crate::world::World;

stories! {
    async fn an_item_is_asked_listed_and_decided(world: &World) {
        let home = Home::new(&world.store).await;
        let mut run = home.started(&world.store).await;
        let other = home.started(&world.store).await;
        let asked = [approval(&home, run.id, "pending"), approval(&home, run.id, "pending")];
        let mut append = run.say(&["asked twice"]);
        append.approvals = asked.to_vec();
        run.head = world.store.append(append).await.unwrap();
        let elsewhere = approval(&home, other.id, "pending");
        let mut append = other.say(&["asked"]);
        append.approvals = vec![elsewhere.clone()];
        world.store.append(append).await.unwrap();

        let decided = ApprovalRow {
            status: "approved".into(), decided_at: Some(at(8)), card: r#"{"by":"ada"}"#.into(), ..asked[0].clone()
        };
        let mut append = run.say(&["approved"]);
        append.approvals = vec![decided.clone()];
        run.head = world.store.append(append).await.unwrap();

        let list = async |filter: ApprovalFilter| world.store.approvals(home.workspace, &filter, 10).await.unwrap();
        let pending = ApprovalFilter { status: Some("pending".into()), ..ApprovalFilter::default() };
        assert_eq!(list(pending.clone()).await, [asked[1].clone(), elsewhere.clone()]);
        let count = async |most| world.store.count_approvals(home.workspace, &pending, most).await.unwrap();
        assert_eq!((count(10).await, count(1).await), (2, 1));
        assert_eq!(list(ApprovalFilter { run: Some(run.id), ..pending.clone() }).await, [asked[1].clone()]);
        let after = ApprovalFilter { after: Some(asked[0].id), ..ApprovalFilter::default() };
        assert_eq!(list(after).await, [asked[1].clone(), elsewhere.clone()]);
        let newest = ApprovalFilter { order: Order::NewestFirst, ..ApprovalFilter::default() };
        assert_eq!(list(newest.clone()).await, [elsewhere.clone(), asked[1].clone(), decided.clone()]);
        let below = ApprovalFilter { after: Some(elsewhere.id), ..newest.clone() };
        assert_eq!(list(below).await, [asked[1].clone(), decided.clone()]);
        let settled = ApprovalFilter { except: Some("pending".into()), ..newest };
        assert_eq!(list(settled).await, std::slice::from_ref(&decided));
        let agent = ApprovalFilter { agent: Some(agent_id()), ..ApprovalFilter::default() };
        assert!(list(agent).await.is_empty());
        assert_eq!(world.store.approval(home.workspace, asked[0].id).await.unwrap(), Some(decided));
    }

    async fn projections_are_rebuilt_from_what_the_log_says_and_the_owner_stays(world: &World) {
        let home = Home::new(&world.store).await;
        let mut run = home.started(&world.store).await;
        let node = node_id();
        world.store.join(node).await.unwrap();
        let claim = world.store.claim_run(node, at(10), run.id).await.unwrap().unwrap();
        let call = run.call();
        let mut append = run.end(&call);
        append.approvals = vec![approval(&home, run.id, "pending")];
        run.head = world.store.append(append).await.unwrap();

        let row = RunRow { state: state("COMPLETED", None), ..run.row(&world.store).await };
        let ended = Some(CallEnd { seq: 2, at: at(9), is_error: true });
        let calls = vec![CallRow { ended, ..run.call() }, CallRow { proposed_at: at(6), ..run.call() }];
        let approvals = vec![approval(&home, run.id, "rejected")];
        world.store.rebuild_run(RunRow { owner: None, epoch: 9, ..row.clone() }, approvals.clone(), calls.clone(), vec![]).await.unwrap();
        assert_eq!(run.row(&world.store).await, row);
        assert_eq!((row.owner, row.epoch), (Some(node), claim.epoch));
        assert_eq!(world.store.calls(home.workspace, run.id).await.unwrap(), calls);
        let filter = ApprovalFilter { run: Some(run.id), ..ApprovalFilter::default() };
        assert_eq!(world.store.approvals(home.workspace, &filter, 10).await.unwrap(), approvals);
    }
}
