//! The plain tables: tenants, chats, values, marks.

use adjutant_core::content::Hash;
use adjutant_core::label::{Labelled, Labels};
use adjutant_store::StoreError;
use adjutant_store::row::{
    ChatFilter, ChatRow, Doing, MarkRow, NotebookRow, Owner, RunChange, RunState, UserRow, WaitingRow, WorkspaceRow,
};

use crate::fixture::*;
use crate::world::World;

stories! {
    async fn messages_wait_in_order_until_their_chat_is_free(world: &World) {
        let store = &world.store;
        let home = Home::new(store).await;
        let run = home.started_here(store, None).await;
        let message = |created| WaitingRow {
            id: run_id(), workspace: home.workspace, chat: home.chat, person: user_id(), created_at: at(created), body: "{}".into(), failed: false,
        };
        let (first, second) = (message(1), message(2));
        store.add_waiting(&first).await.unwrap();
        store.add_waiting(&second).await.unwrap();
        assert_eq!(store.waiting_in(home.workspace, home.chat, 9).await.unwrap(), [first.clone(), second.clone()]);
        assert_eq!(store.waiting_message(home.workspace, second.id).await.unwrap(), Some(second.clone()));
        assert_eq!(store.waiting_message(workspace_id(), second.id).await.unwrap(), None);
        assert_eq!(store.chats_waited_for(9, 0).await.unwrap(), [(home.workspace, home.chat, false)]);

        let mut append = run.say(&["done"]);
        let ended = RunState { ended_at: Some(at(9)), ..state("COMPLETED", None) };
        append.run = Some(RunChange::Update { state: ended, release: true });
        store.append(append).await.unwrap();
        assert_eq!(store.chats_waited_for(9, 0).await.unwrap(), [(home.workspace, home.chat, true)]);
        assert!(store.remove_waiting(home.workspace, first.id).await.unwrap());
        assert!(!store.remove_waiting(home.workspace, first.id).await.unwrap());
        assert_eq!(store.waiting_in(home.workspace, home.chat, 9).await.unwrap(), [second]);
    }

    async fn a_message_that_waits_becomes_a_run_once_and_not_after_it_was_taken_back(world: &World) {
        let store = &world.store;
        let home = Home::new(store).await;
        let mut tip = None;
        let mut waits = async |failed| {
            let mut start = home.start(tip);
            let id = run_of(&start);
            let row = WaitingRow {
                id, workspace: home.workspace, chat: home.chat, person: user_id(), created_at: at(1), body: "{}".into(), failed,
            };
            store.add_waiting(&row).await.unwrap();
            start.doing = Some(Doing::StartWaiting(id));
            tip = tip.or(Some(id));
            (row, start)
        };
        let (first, start) = waits(false).await;
        assert_eq!(store.find_waiting(first.id).await.unwrap(), Some(home.workspace));
        assert_eq!(store.next_waiting(home.workspace, home.chat).await.unwrap(), Some(first.clone()));
        store.append(start).await.unwrap();
        assert_eq!(store.waiting_message(home.workspace, first.id).await.unwrap(), None);
        assert!(!store.remove_waiting(home.workspace, first.id).await.unwrap());
        assert!(store.run(home.workspace, first.id).await.unwrap().is_some());

        let (back, start) = waits(false).await;
        assert!(store.remove_waiting(home.workspace, back.id).await.unwrap());
        assert!(matches!(store.append(start).await, Err(StoreError::NotFound)));
        assert_eq!(store.run(home.workspace, back.id).await.unwrap(), None);

        let (bad, start) = waits(false).await;
        let told = WaitingRow { body: "{\"failure\":\"x\"}".into(), failed: true, ..bad.clone() };
        store.fail_waiting(&told).await.unwrap();
        assert_eq!(store.next_waiting(home.workspace, home.chat).await.unwrap(), None);
        assert_eq!(store.chats_waited_for(9, 0).await.unwrap(), []);
        assert_eq!(store.waiting_in(home.workspace, home.chat, 9).await.unwrap(), [told]);
        assert!(matches!(store.append(start).await, Err(StoreError::NotFound)));
        assert_eq!(store.chat(home.workspace, home.chat).await.unwrap().unwrap().tip, Some(first.id));
    }

    async fn workspaces_users_and_notebooks_are_found_by_id_and_by_name(world: &World) {
        let store = &world.store;
        let ws = WorkspaceRow { time_zone: "Europe/Berlin".into(), ..WorkspaceRow::new(workspace_id(), "home", "Home", at(1)) };
        store.create_workspace(&ws).await.unwrap();
        let twin = WorkspaceRow { id: workspace_id(), ..ws.clone() };
        assert!(matches!(store.create_workspace(&twin).await, Err(StoreError::Conflict(_))));
        assert_eq!(store.workspaces().await.unwrap(), std::slice::from_ref(&ws));
        assert_eq!(store.workspace(ws.id).await.unwrap(), Some(ws.clone()));
        assert_eq!(store.workspace_by_slug("home").await.unwrap(), Some(ws.clone()));
        assert_eq!(store.workspace_by_slug("Home").await.unwrap(), None);

        let user = UserRow { id: user_id(), name: "ada".into(), created_at: at(1) };
        store.create_user(&user).await.unwrap();
        assert!(matches!(store.create_user(&UserRow { id: user_id(), ..user.clone() }).await, Err(StoreError::Conflict(_))));
        assert_eq!(store.users().await.unwrap(), std::slice::from_ref(&user));
        assert_eq!(store.user_by_name("ada").await.unwrap(), Some(user));

        let book = NotebookRow { id: notebook_id(), workspace: ws.id, slug: "welcome".into(), linked: None, created_at: at(1) };
        let linked = NotebookRow { id: notebook_id(), slug: "src".into(), linked: Some("/srv/src".into()), ..book.clone() };
        store.create_notebook(&book).await.unwrap();
        store.create_notebook(&linked).await.unwrap();
        let twin = NotebookRow { id: notebook_id(), ..book.clone() };
        assert!(matches!(store.create_notebook(&twin).await, Err(StoreError::Conflict(_))));
        let nowhere = NotebookRow { workspace: workspace_id(), ..twin };
        assert!(matches!(store.create_notebook(&nowhere).await, Err(StoreError::NotFound)));
        assert_eq!(store.notebooks(ws.id).await.unwrap(), [book.clone(), linked.clone()]);
        assert_eq!(store.notebook(ws.id, linked.id).await.unwrap(), Some(linked));
        assert_eq!(store.notebook_by_slug(ws.id, "welcome").await.unwrap(), Some(book.clone()));
        assert_eq!(store.notebook(workspace_id(), book.id).await.unwrap(), None);
    }

    async fn chats_are_listed_newest_first(world: &World) {
        let home = Home::new(&world.store).await;
        let chat = ChatRow {
            id: chat_id(), workspace: home.workspace, agent: agent_id(), notebook: Some(notebook_id()), owner: user_id(),
            title: "Über die Reise".into(), tip: None, forked_from: Some(run_id()), created_at: at(1),
            shared: false, alias: None, model: Some("a/b".into()), metadata: Some(r#"{"ticket":"7"}"#.into()),
        };
        world.store.create_chat(&chat).await.unwrap();
        assert!(matches!(world.store.create_chat(&chat).await, Err(StoreError::Conflict(_))));
        let nowhere = ChatRow { workspace: workspace_id(), ..chat.clone() };
        assert!(matches!(world.store.create_chat(&nowhere).await, Err(StoreError::NotFound)));
        assert_eq!(world.store.chat(home.workspace, chat.id).await.unwrap(), Some(chat.clone()));
        let chat = ChatRow { title: "Nach der Reise".into(), shared: true, model: None, ..chat };
        let elsewhere = ChatRow { workspace: Home::new(&world.store).await.workspace, ..chat.clone() };
        assert!(world.store.change_chat(&chat).await.unwrap() && !world.store.change_chat(&elsewhere).await.unwrap());
        assert_eq!(world.store.chat(home.workspace, chat.id).await.unwrap(), Some(chat.clone()));
        let all = world.store.chats(home.workspace, &ChatFilter::default(), 10).await.unwrap();
        assert_eq!(all.iter().map(|row| row.id).collect::<Vec<_>>(), [chat.id, home.chat]);
        assert_eq!(world.store.chats(home.workspace, &ChatFilter::default(), 1).await.unwrap(), std::slice::from_ref(&chat));
        let of_agent = ChatFilter { agent: Some(chat.agent), ..ChatFilter::default() };
        assert_eq!(world.store.chats(home.workspace, &of_agent, 10).await.unwrap(), [chat]);
    }

    async fn an_agents_values_are_its_own_and_keys_are_text(world: &World) {
        let home = Home::new(&world.store).await;
        let (store, ws, me, other) = (&world.store, home.workspace, home.agent, agent_id());
        let owner = home.driven(store).await;
        for (key, value) in [("a", "1"), ("a%", "2"), ("a%b", "3"), ("ab", "4"), ("a_", "5"), ("é", "6"), ("éa", "7")] {
            store.kv_set(ws, me, key, &plain(value), owner).await.unwrap();
        }
        let spoilt = Labelled { text: "changed".into(), labels: Labels::UNTRUSTED.join(Labels::PRIVATE) };
        store.kv_set(ws, me, "a", &spoilt, owner).await.unwrap();
        store.kv_set(ws, other, "a", &plain("the other's"), owner).await.unwrap();
        assert_eq!(store.kv_get(ws, me, "a").await.unwrap(), Some(spoilt.clone()));
        assert_eq!(store.kv_get(ws, other, "a").await.unwrap(), Some(plain("the other's")));
        assert_eq!(store.kv_get(ws, me, "A").await.unwrap(), None);

        let keys = async |prefix: &str, limit| {
            let found = store.kv_list(ws, me, prefix, limit).await.unwrap();
            found.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!(keys("a%", 9).await, ["a%", "a%b"]);
        assert_eq!(keys("a_", 9).await, ["a_"]);
        assert_eq!(keys("é", 9).await, ["é", "éa"]);
        assert_eq!(keys("", 3).await, ["a", "a%", "a%b"]);
        assert_eq!(keys("zzz", 9).await, [""; 0]);
        assert_eq!(store.kv_list(ws, me, "é", 1).await.unwrap(), [("é".to_owned(), plain("6"))]);
        assert_eq!(store.kv_list(ws, me, "a", 1).await.unwrap(), [("a".to_owned(), spoilt)], "a value keeps its labels");

        assert!(store.kv_delete(ws, me, "a", owner).await.unwrap());
        assert!(!store.kv_delete(ws, me, "a", owner).await.unwrap());
        assert_eq!(store.kv_get(ws, me, "a").await.unwrap(), None);
        assert!(store.kv_set(workspace_id(), me, "a", &plain("1"), owner).await.is_err(), "no such workspace");
    }

    async fn a_node_that_has_lost_its_run_changes_no_value_of_the_agent(world: &World) {
        let home = Home::new(&world.store).await;
        let (store, ws, me) = (&world.store, home.workspace, home.agent);
        let late = home.driven(store).await;
        store.kv_set(ws, me, "a", &plain("mine"), late).await.unwrap();
        world.expire(late.node).await;
        let next = node_id();
        store.join(next).await.unwrap();
        let claim = store.claim_run(next, at(10), late.run).await.unwrap().unwrap();
        let owner = Owner { node: next, epoch: claim.epoch, ..late };
        store.kv_set(ws, me, "a", &plain("newer"), owner).await.unwrap();

        let older = Owner { epoch: late.epoch, ..owner };
        for late in [late, older] {
            let set = store.kv_set(ws, me, "a", &plain("late"), late).await;
            assert!(matches!(set, Err(StoreError::Stale { fenced: true })), "{set:?}");
            for key in ["a", "nothing"] {
                let deleted = store.kv_delete(ws, me, key, late).await;
                assert!(matches!(deleted, Err(StoreError::Stale { fenced: true })), "{deleted:?}");
            }
        }
        assert_eq!(store.kv_get(ws, me, "a").await.unwrap(), Some(plain("newer")));
        assert!(store.kv_delete(ws, me, "a", owner).await.unwrap());
    }

    async fn the_first_value_of_the_instance_stays_when_two_set_it(world: &World) {
        let store = &world.store;
        assert_eq!(store.meta_get("signing_key").await.unwrap(), None);
        assert_eq!(store.meta_set_if_absent("signing_key", b"first").await.unwrap(), b"first");
        assert_eq!(store.meta_set_if_absent("signing_key", b"second").await.unwrap(), b"first");
        store.meta_set("signing_key", b"\0third\xff").await.unwrap();
        assert_eq!(store.meta_get("signing_key").await.unwrap().as_deref(), Some(&b"\0third\xff"[..]));
    }

    async fn a_mark_is_about_one_content_of_one_file_and_is_written_with_its_event(world: &World) {
        let home = Home::new(&world.store).await;
        let run = home.started(&world.store).await;
        let (store, ws, book) = (&world.store, home.workspace, notebook_id());
        let mark = |path: &str, content: &str| {
            MarkRow { notebook: book, path: path.into(), hash: Hash::of(content.as_bytes()) }
        };
        let all = [mark("/a.md", "1"), mark("/a.md", "2"), mark("/x/b.md", "3"), mark("/x0.md", "4")];
        let mut append = run.say(&["call started"]);
        append.marks = [&all[..], &[mark("/a.md", "1")]].concat();
        let stale = append.clone();
        store.append(append).await.unwrap();
        let found = async |path: &str| {
            let mut found = store.marks(ws, book, path).await.unwrap();
            found.sort_by(|one, two| (&one.path, one.hash.0).cmp(&(&two.path, two.hash.0)));
            found.into_iter().map(|row| row.path).collect::<Vec<_>>()
        };
        assert_eq!(found("/a.md").await, ["/a.md", "/a.md"]);
        assert_eq!(found("/x").await, ["/x/b.md"]);
        assert_eq!(found("/").await, ["/a.md", "/a.md", "/x/b.md", "/x0.md"]);
        assert!(store.marks(ws, notebook_id(), "/a.md").await.unwrap().is_empty());
        assert!(store.marks(Home::new(store).await.workspace, book, "/").await.unwrap().is_empty());
        store.clear_marks(ws, book, "/a.md").await.unwrap();
        assert_eq!(found("/").await, ["/x/b.md", "/x0.md"]);
        assert!(is_stale(&store.append(stale).await));
        assert_eq!(found("/").await, ["/x/b.md", "/x0.md"], "whoever loses a race marks nothing");
    }

    async fn a_healthy_store_says_so(world: &World) {
        let health = world.store.health().await.unwrap();
        world.store.check_integrity().await.unwrap();
        let ready = world.store.readiness().await.unwrap();
        assert_eq!((ready.backend, ready.schema, ready.writable), (health.backend, health.schema, true));
        if world.is_sqlite() {
            assert_eq!((health.backend, health.journal.as_str(), health.sealed), ("sqlite", "wal", true));
            assert!(health.bytes > 0 && health.schema > 0);
        }
        if world.is_postgres() {
            assert_eq!((health.backend, health.sealed), ("postgres", true));
            assert!(health.bytes > 0 && health.schema > 0);
        }
    }
}
