//! A move to another database that is killed on the way: it goes on, or nothing of it is used.

use crate::house::{Base, House, Story, live};

/// What a move of this house prints, and whether it was killed.
async fn moved(house: &House, to: &str, dies_at: Option<&str>) -> crate::house::Done {
    let mut command = house.command(&["migrate", "--from", "sqlite", "--to", to]);
    command.envs(dies_at.map(|point| ("ADJUTANT_FAULT", point)));
    crate::house::Done::of(command).await
}

#[test]
fn a_move_to_postgres_that_is_killed_goes_on_where_it_was() {
    live(async {
        if !Base::all().contains(&Base::Postgres) {
            return;
        }
        let (house, new) =
            (House::new(Story::InARow, Base::Sqlite).await, House::new(Story::InARow, Base::Postgres).await);
        let done = crate::house::Done::of(house.start()).await;
        assert_eq!(done.status.code(), Some(0), "{done}");
        let to = new.database().unwrap().to_owned();
        // Also when everything is there and nobody has looked at it yet, or has just done so.
        for point in ["copy.put:1", "copy.put:7", "copy.put:5", "copy.opened:1", "copy.finish:1"] {
            let killed = moved(&house, &to, Some(point)).await;
            assert!(killed.was_killed(), "{point}: {killed}");
            let refused = new.adjutant(&["runs", "ls"]).await;
            assert!(refused.err.contains("did not come to its end"), "{refused}");
        }
        let done = moved(&house, &to, None).await;
        assert_eq!(done.status.code(), Some(0), "{done}");
        assert!(
            done.out.contains("rows are moved, read back and equal") && done.out.contains("logs are whole there"),
            "{done}"
        );

        let there = |arguments: &[&str]| {
            let mut command = house.command(arguments);
            command.env("ADJUTANT_DATABASE_URL", &to);
            crate::house::Done::of(command)
        };
        let (before, after) = (house.adjutant(&["runs", "ls", "--json"]).await, there(&["runs", "ls", "--json"]).await);
        assert_eq!(before.out, after.out);
        let verified = there(&["audit", "verify"]).await;
        assert_eq!(verified.status.code(), Some(0), "{verified}");
        let recorded = there(&["audit", "search", "kind:database_moved"]).await;
        assert!(recorded.out.contains("from SQLite to PostgreSQL"), "{recorded}");
        let kept = there(&["run", "keeper", "what do you keep", "--approve", "fail"]).await;
        assert_eq!(kept.out.trim_end(), crate::house::KEPT, "{kept}");
        let again = moved(&house, &to, None).await;
        assert!(again.status.code() != Some(0) && again.err.contains("not empty"), "{again}");

        // And back, into a data directory whose old database was put away.
        std::fs::rename(house.path().join("data/adjutant.db"), house.path().join("old.db")).unwrap();
        let back = house.adjutant(&["migrate", "--from", &to, "--to", "sqlite"]).await;
        assert_eq!(back.status.code(), Some(0), "{back}");
        let (there, here) = (there(&["runs", "ls", "--json"]).await, house.adjutant(&["runs", "ls", "--json"]).await);
        assert_eq!(there.out, here.out);
        new.end().await;
        house.end().await;
    });
}
