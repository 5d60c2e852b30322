//! Erasing that is killed on the way: what is gone is gone whole, and asking again goes on.

use crate::house::{Base, Done, House, Story, live};

#[test]
fn an_erasure_that_is_killed_between_two_runs_leaves_whole_chains_and_is_gone_on_with() {
    live(async {
        for base in Base::all() {
            let house = House::new(Story::InARow, base).await;
            for _ in 0..3 {
                let done = Done::of(house.start()).await;
                assert_eq!(done.status.code(), Some(0), "{done}");
            }
            let mut dying = house.command(&["audit", "erase", "--before", "0m", "--yes"]);
            dying.env("ADJUTANT_FAULT", "erase.after:2");
            let killed = Done::of(dying).await;
            assert!(killed.was_killed(), "{killed}");
            house.lease_runs_out().await;
            let verified = house.adjutant(&["audit", "verify"]).await;
            assert_eq!(verified.status.code(), Some(0), "{verified}");
            let again = house.adjutant(&["audit", "erase", "--before", "0m", "--yes"]).await;
            assert!(again.out.contains("what was said in 1 run is erased"), "{again}");
            let last = house.adjutant(&["audit", "erase", "--before", "0m", "--yes"]).await;
            assert!(last.out.contains("Nothing is left to erase"), "{last}");
            let begun = house.adjutant(&["audit", "search", "kind:erase_begun", "--json"]).await;
            let ended = house.adjutant(&["audit", "search", "kind:erase_ended", "--json"]).await;
            let count = |done: &Done| done.out.matches("\"seq\"").count();
            assert_eq!((count(&begun), count(&ended)), (2, 1), "{begun} {ended}");
            house.end().await;
        }
    });
}
