//! Who may come in: people, members, sessions, tokens, links that are good once, and requests that were sent twice.

use adjutant_core::content::Hash;
use adjutant_core::id::{TokenId, UserId};
use adjutant_core::run::chain::StreamId;
use adjutant_store::row::{
    Admission, AgentPeople, AgentRow, ApprovalFilter, Doing, InviteRow, Reply, RunFilter, SessionRow, TokenRow, UserRow,
};
use adjutant_store::{Store, StoreError};

use crate::fixture::*;
use crate::world::World;

async fn person(store: &Store, name: &str) -> UserId {
    let user = UserRow { id: user_id(), name: name.into(), created_at: at(1) };
    store.create_user(&user).await.unwrap();
    user.id
}

fn hash(text: &str) -> Hash {
    Hash::of(text.as_bytes())
}

fn link(secret: &str, kind: &str) -> InviteRow {
    let (hash, kind) = (hash(secret), kind.to_owned());
    InviteRow {
        hash,
        kind,
        workspace: None,
        role: None,
        user: None,
        made_by: None,
        created_at: at(1),
        expires_at: at(100),
    }
}

/// Changes who may come in, and records it.
async fn admit(store: &Store, change: Admission) -> Result<(), StoreError> {
    let workspace = workspace_id();
    let head = store.head(workspace, StreamId::System).await?;
    let mut append = add(workspace, StreamId::System, head, &["admitted"]);
    append.doing = Some(Doing::Admit(change));
    let done = store.append(append).await.map(drop);
    assert_eq!(store.head(workspace, StreamId::System).await? == head, done.is_err(), "recorded if and only if done");
    done
}

database_stories! {
    async fn an_instance_is_claimed_once(world: &World) {
        let store = &world.store;
        let (ada, bob) = (person(store, "admin").await, person(store, "bob").await);
        assert_eq!(store.owner().await.unwrap(), None);
        assert!(store.claim_instance(ada, "ada", Some("hashed")).await.unwrap());
        assert!(!store.claim_instance(bob, "bob", None).await.unwrap());
        let owner = store.owner().await.unwrap().unwrap();
        assert_eq!((owner.id, owner.name.as_str(), owner.password.as_deref()), (ada, "ada", Some("hashed")));
        assert!(!store.login(bob).await.unwrap().unwrap().owner);
    }

    async fn members_have_one_role_in_a_workspace(world: &World) {
        let store = &world.store;
        let (home, other) = (Home::new(store).await, Home::new(store).await);
        let ada = person(store, "ada").await;
        store.put_member(home.workspace, ada, "read", at(1)).await.unwrap();
        store.put_member(home.workspace, ada, "admin", at(2)).await.unwrap();
        assert!(matches!(store.put_member(home.workspace, user_id(), "read", at(1)).await, Err(StoreError::NotFound)));
        let members = store.members(home.workspace).await.unwrap();
        assert_eq!(members.iter().map(|row| (row.user, row.role.as_str())).collect::<Vec<_>>(), [(ada, "admin")]);
        assert_eq!(store.members(other.workspace).await.unwrap(), []);
        let mine = store.memberships(ada).await.unwrap();
        assert_eq!(mine.iter().map(|row| row.workspace).collect::<Vec<_>>(), [home.workspace]);
        let bob = person(store, "bob").await;
        let member = |user, role: &str| Admission::Member { workspace: home.workspace, user, role: role.into(), since: at(3) };
        admit(store, member(bob, "read")).await.unwrap();
        let out = |workspace, user| admit(store, Admission::NoMember { workspace, user, at: at(9) });
        assert!(out(other.workspace, ada).await.is_err());
        assert!(matches!(out(home.workspace, user_id()).await, Err(StoreError::NotFound)));
        for last in [out(home.workspace, ada).await, admit(store, member(ada, "write")).await] {
            assert!(matches!(last, Err(StoreError::Conflict(_))), "{last:?}");
        }
        admit(store, member(bob, "admin")).await.unwrap();
        let people = AgentPeople { shared_with: [ada, bob].into(), approvers: [ada].into() };
        for of in [&home, &other] {
            save_agent(store, &AgentRow { people: people.clone(), ..agent_row(of, "guide") }, 0).await.unwrap();
        }
        out(home.workspace, ada).await.unwrap();
        assert_eq!(store.memberships(ada).await.unwrap(), []);
        let left = AgentPeople { shared_with: [bob].into(), approvers: [].into() };
        assert_eq!(store.agent(home.workspace, home.agent).await.unwrap().unwrap().people, left);
        assert_eq!(store.agent(other.workspace, other.agent).await.unwrap().unwrap().people, people);
    }

    async fn a_session_ends_with_its_person_their_password_or_the_clock(world: &World) {
        let store = &world.store;
        let ada = person(store, "ada").await;
        let open = async |secret: &str, until| {
            let row = SessionRow { hash: hash(secret), user: ada, created_at: at(1), expires_at: at(until) };
            store.create_session(&row).await.unwrap();
            row
        };
        let row = open("one", 100).await;
        assert_eq!(store.session(row.hash).await.unwrap(), Some(row.clone()));
        let old = open("old", 5).await;
        store.end_session(hash("none"), at(10)).await.unwrap();
        assert_eq!((store.session(old.hash).await.unwrap(), store.session(row.hash).await.unwrap()), (None, Some(row.clone())));
        admit(store, Admission::Password { user: ada, hash: "new".into() }).await.unwrap();
        assert_eq!(store.session(row.hash).await.unwrap(), None);
        let row = open("two", 100).await;
        let homes = [Home::new(store).await, Home::new(store).await];
        for home in &homes {
            let agent = AgentRow { owner: Some(ada), ..agent_row(home, "guide") };
            save_agent(store, &agent, 0).await.unwrap();
        }
        admit(store, Admission::Active { user: ada, active: false, at: at(9) }).await.unwrap();
        for home in &homes {
            let agent = store.agent(home.workspace, home.agent).await.unwrap().unwrap();
            assert_eq!((agent.active, agent.version), (false, 2), "nobody is left to answer for it");
        }
        let nobody = Admission::Active { user: user_id(), active: true, at: at(9) };
        assert!(matches!(admit(store, nobody).await, Err(StoreError::NotFound)));
        assert_eq!(store.session(row.hash).await.unwrap(), None);
        assert!(!store.login(ada).await.unwrap().unwrap().active);
    }

    async fn a_token_belongs_to_its_person(world: &World) {
        let store = &world.store;
        let (ada, bob) = (person(store, "ada").await, person(store, "bob").await);
        let id = TokenId::new(at(1), [1; 10]);
        let (name, scopes, hint) = ("ci".to_owned(), "read run".to_owned(), "9f2k".to_owned());
        let row = TokenRow {
            id, user: ada, workspace: None, name, hash: hash("secret"), hint, scopes, created_at: at(1), expires_at: None,
            used_at: None,
        };
        admit(store, Admission::Token(Box::new(row.clone()))).await.unwrap();
        let twin = TokenRow { id: TokenId::new(at(2), [1; 10]), ..row.clone() };
        assert!(matches!(admit(store, Admission::Token(Box::new(twin))).await, Err(StoreError::Conflict(_))));
        store.touch_token(id, at(9)).await.unwrap();
        let used = TokenRow { used_at: Some(at(9)), ..row };
        assert_eq!(store.token_by_hash(hash("secret")).await.unwrap(), Some(used.clone()));
        assert_eq!(store.token_by_hash(hash("other")).await.unwrap(), None);
        assert_eq!((store.tokens(ada).await.unwrap(), store.tokens(bob).await.unwrap()), (vec![used], vec![]));
        assert!(matches!(admit(store, Admission::NoToken { user: bob, id }).await, Err(StoreError::NotFound)));
        admit(store, Admission::NoToken { user: ada, id }).await.unwrap();
        assert_eq!(store.token_by_hash(hash("secret")).await.unwrap(), None);
    }

    async fn a_link_is_good_once_for_its_purpose_and_in_its_time(world: &World) {
        let store = &world.store;
        let (home, ada) = (Home::new(store).await, person(store, "admin").await);
        store.create_invite(&link("first", "setup")).await.unwrap();
        store.create_invite(&link("second", "setup")).await.unwrap();
        assert!(!store.use_setup(hash("first"), at(2), ada, "ada", "p").await.unwrap());
        assert!(!store.use_setup(hash("second"), at(100), ada, "ada", "p").await.unwrap());
        assert!(!store.use_invite(hash("second"), at(2), user_id(), "eve", "p").await.unwrap());
        assert!(store.use_setup(hash("second"), at(2), ada, "ada", "p").await.unwrap());
        assert!(!store.use_setup(hash("second"), at(3), ada, "eve", "p").await.unwrap());

        let (workspace, role) = (Some(home.workspace), Some("write".to_owned()));
        store.create_invite(&InviteRow { workspace, role, ..link("third", "invite") }).await.unwrap();
        let bob = user_id();
        // A name that is taken does not use the link up.
        assert!(matches!(store.use_invite(hash("third"), at(2), bob, "ada", "p").await, Err(StoreError::Conflict(_))));
        assert!(store.use_invite(hash("third"), at(2), bob, "bob", "p").await.unwrap());
        assert!(!store.use_invite(hash("third"), at(3), user_id(), "eve", "p").await.unwrap());
        assert_eq!(store.memberships(bob).await.unwrap()[0].role, "write");

        // A link is good while whoever made it may make such links.
        let (workspace, role, made_by) = (Some(home.workspace), Some("admin".to_owned()), Some(bob));
        let late = InviteRow { workspace, role, made_by, ..link("late", "invite") };
        store.create_invite(&late).await.unwrap();
        assert!(!store.use_invite(hash("late"), at(2), user_id(), "eve", "p").await.unwrap());
        store.put_member(home.workspace, bob, "admin", at(1)).await.unwrap();
        admit(store, Admission::Active { user: bob, active: false, at: at(9) }).await.unwrap();
        assert!(!store.use_invite(hash("late"), at(2), user_id(), "eve", "p").await.unwrap());
        admit(store, Admission::Active { user: bob, active: true, at: at(9) }).await.unwrap();
        assert!(store.use_invite(hash("late"), at(2), user_id(), "eve", "p").await.unwrap());

        // What nobody has used can be seen and taken back, by its workspace alone.
        let (workspace, role) = (Some(home.workspace), Some("read".to_owned()));
        store.create_invite(&InviteRow { workspace, role, ..link("seen", "invite") }).await.unwrap();
        let seen = async |now| store.invites(home.workspace, now).await.unwrap();
        assert_eq!(seen(at(2)).await.iter().map(|row| row.hash).collect::<Vec<_>>(), [hash("seen")]);
        assert!(seen(at(100)).await.is_empty());
        let (mine, other) = (home.workspace, Home::new(store).await.workspace);
        let withdraw = |workspace| Admission::NoInvite { workspace, hash: hash("seen") };
        assert!(matches!(admit(store, withdraw(other)).await, Err(StoreError::NotFound)));
        admit(store, withdraw(mine)).await.unwrap();
        assert!(matches!(admit(store, withdraw(mine)).await, Err(StoreError::NotFound)));
        assert!(!store.use_invite(hash("seen"), at(2), user_id(), "mallory", "p").await.unwrap());

        store.create_invite(&InviteRow { user: Some(bob), ..link("older", "reset") }).await.unwrap();
        store.create_invite(&InviteRow { user: Some(bob), ..link("fourth", "reset") }).await.unwrap();
        assert_eq!(store.use_reset(hash("older"), at(2), "old").await.unwrap(), None, "a newer link takes its place");
        assert_eq!(store.use_reset(hash("fourth"), at(2), "new").await.unwrap(), Some(bob));
        assert_eq!(store.use_reset(hash("fourth"), at(3), "newer").await.unwrap(), None);
        assert_eq!(store.login(bob).await.unwrap().unwrap().password.as_deref(), Some("new"));
    }

    async fn attempts_are_counted_one_by_one_and_forgotten(world: &World) {
        let store = &world.store;
        let count = async |what: &str, slot| store.count_attempt(what, slot, 2).await.unwrap();
        let (one, two, three) = tokio::join!(count("a", 7), count("a", 7), count("a", 7));
        assert_eq!([one, two, three].iter().filter(|counted| **counted).count(), 2);
        assert!(count("b", 7).await && count("a", 8).await && count("a", 9).await);
        assert!(count("a", 7).await, "it was forgotten");
    }

    async fn a_request_that_is_sent_twice_is_answered_from_the_first(world: &World) {
        let store = &world.store;
        let (ada, bob) = (user_id(), user_id());
        let node = node_id();
        store.join(node).await.unwrap();
        let take = async |user, request: &str| {
            store.take_key(user, "key", (node, hash(request)), at(5), at(1)).await.unwrap()
        };
        assert_eq!(take(ada, "same").await, Reply::New);
        assert_eq!(take(ada, "same").await, Reply::Taken { request: hash("same") });
        assert_eq!(take(bob, "same").await, Reply::New);
        store.keep_reply(ada, "key", Some(b"answer")).await.unwrap();
        let answered = Reply::Answered { request: hash("same"), reply: b"answer".to_vec() };
        assert_eq!(take(ada, "other").await, answered);
        store.keep_reply(bob, "key", None).await.unwrap();
        assert_eq!(take(bob, "other").await, Reply::New);
        assert_eq!(store.take_key(ada, "key", (node, hash("late")), at(9), at(6)).await.unwrap(), Reply::New);
    }

    async fn a_request_whose_node_is_gone_is_lost_until_it_is_answered_after_all(world: &World) {
        let store = &world.store;
        let (ada, bob, node) = (user_id(), user_id(), node_id());
        store.join(node).await.unwrap();
        let take = async |user| store.take_key(user, "key", (node, hash("same")), at(5), at(1)).await.unwrap();
        assert_eq!((take(ada).await, take(bob).await), (Reply::New, Reply::New));
        store.lose_reply(bob, "key").await.unwrap();
        assert_eq!(take(bob).await, Reply::Lost { request: hash("same") });
        assert_eq!(take(ada).await, Reply::Taken { request: hash("same") });
        store.leave(node).await.unwrap();
        assert_eq!(take(ada).await, Reply::Lost { request: hash("same") });
        // It was only slow.
        store.keep_reply(ada, "key", Some(b"answer")).await.unwrap();
        assert_eq!(take(ada).await, Reply::Answered { request: hash("same"), reply: b"answer".to_vec() });
    }
}

stories! {
    async fn what_belongs_to_others_is_not_listed_until_it_is_shared(world: &World) {
        let store = &world.store;
        let home = Home::new(store).await;
        let run = home.started(store).await;
        let mut append = home.started(store).await.say(&["asked"]);
        append.approvals = vec![approval(&home, run.id, "pending")];
        store.append(append).await.unwrap();
        let initiator = store.run(home.workspace, run.id).await.unwrap().unwrap().initiator;
        let runs = async |person| {
            let filter = RunFilter { visible_to: Some(person), ..RunFilter::default() };
            store.runs(home.workspace, &filter, 10).await.unwrap().len()
        };
        let items = async |person| {
            let filter = ApprovalFilter { visible_to: Some(person), ..ApprovalFilter::default() };
            store.approvals(home.workspace, &filter, 10).await.unwrap().len()
        };
        let stranger = user_id();
        assert!(runs(initiator).await >= 1);
        assert_eq!((items(initiator).await, runs(stranger).await, items(stranger).await), (1, 0, 0));
        // Whose the agent is sees what it asks, and not what is said to it.
        let owner = user_id();
        let agent = store.run(home.workspace, run.id).await.unwrap().unwrap().agent;
        let agent = adjutant_store::row::AgentRow {
            id: agent, workspace: home.workspace, slug: "asks".into(), version: 1, active: true, spec: "{}".into(),
            saved_at: at(1), owner: Some(owner), created_by: None, people: AgentPeople::default(),
        };
        save_agent(store, &agent, 0).await.unwrap();
        assert_eq!((items(owner).await, runs(owner).await), (1, 0));
        // So does whoever else decides for it, and nobody whom it is only shared with.
        let (approver, guest) = (user_id(), user_id());
        let people = AgentPeople { shared_with: [guest].into(), approvers: [user_id(), approver].into() };
        save_agent(store, &adjutant_store::row::AgentRow { people, ..agent }, 1).await.unwrap();
        assert_eq!((items(approver).await, runs(approver).await), (1, 0));
        assert_eq!((items(guest).await, runs(guest).await), (0, 0));
        let chat = store.run(home.workspace, run.id).await.unwrap().unwrap().chat;
        let row = store.chat(home.workspace, chat).await.unwrap().unwrap();
        let ours = adjutant_store::row::ChatRow { title: "Ours".into(), shared: true, metadata: Some("{}".into()), ..row };
        assert!(store.change_chat(&ours).await.unwrap());
        assert!(runs(stranger).await >= 1);
        assert_eq!(items(stranger).await, 1);
        assert_eq!(store.chat(home.workspace, chat).await.unwrap().as_ref(), Some(&ours));
        let theirs = adjutant_store::row::ChatRow { workspace: Home::new(store).await.workspace, ..ours };
        assert!(!store.change_chat(&theirs).await.unwrap());
    }

    async fn an_agent_that_was_taken_away_leaves_its_versions(world: &World) {
        let home = Home::new(&world.store).await;
        let row = adjutant_store::row::AgentRow {
            id: agent_id(), workspace: home.workspace, slug: "guide".into(), version: 1, active: true, spec: "{}".into(),
            saved_at: at(1), owner: Some(user_id()), created_by: Some(user_id()),
            people: AgentPeople { shared_with: [user_id(), user_id()].into(), approvers: [user_id()].into() },
        };
        save_agent(&world.store, &row, 0).await.unwrap();
        assert_eq!(world.store.agent(home.workspace, row.id).await.unwrap(), Some(row.clone()));
        assert_eq!(world.store.agent_versions(home.workspace, row.id).await.unwrap(), std::slice::from_ref(&row));
        let delete = async |version| {
            let stream = StreamId::Workspace(home.workspace);
            let head = world.store.head(home.workspace, stream).await?;
            let mut append = add(home.workspace, stream, head, &["agent removed"]);
            append.doing = Some(Doing::DeleteAgent(row.id, version));
            world.store.append(append).await.map(drop)
        };
        assert!(matches!(delete(2).await, Err(StoreError::Stale { .. })));
        delete(1).await.unwrap();
        assert_eq!(world.store.agent(home.workspace, row.id).await.unwrap(), None);
    }
}
