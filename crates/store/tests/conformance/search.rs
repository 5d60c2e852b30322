//! The search index: words, the last one from its beginning, of one notebook, whatever a person types.

use adjutant_store::row::IndexedFile;

use crate::fixture::*;
use crate::world::World;

fn file(path: &str, text: &str) -> IndexedFile {
    IndexedFile { path: path.into(), size: text.len() as u64, modified: 7, text: text.into() }
}

stories! {
    async fn a_search_finds_files_that_hold_all_words_and_shows_where(world: &World) {
        let home = Home::new(&world.store).await;
        let (store, ws, book) = (&world.store, home.workspace, notebook_id());
        let files = vec![
            file("/trip.md", "We plan a journey to Lisbon in spring and pack light."),
            file("/garden.md", "In spring the garden needs water."),
            file("/ünicode.md", "Ein Überblick über Gärten"),
        ];
        store.index_put(ws, book, files).await.unwrap();
        let paths = async |query: &str| {
            let mut found: Vec<_> = store.search(ws, book, query, 10).await.unwrap().into_iter().map(|hit| hit.path).collect();
            found.sort();
            found
        };
        assert_eq!(paths("spring").await, ["/garden.md", "/trip.md"]);
        assert_eq!(paths("spring lisbon").await, ["/trip.md"]);
        assert_eq!(paths("SPRING  Garden").await, ["/garden.md"]);
        assert_eq!(paths("überblick").await, ["/ünicode.md"]);
        assert_eq!(paths("winter").await, [""; 0]);
        assert_eq!(store.search(ws, book, "spring", 1).await.unwrap().len(), 1);
        let hit = store.search(ws, book, "lisbon", 10).await.unwrap().remove(0);
        assert!(hit.snippet.contains("[Lisbon]"), "{}", hit.snippet);
    }

    async fn the_beginning_of_the_last_word_is_enough(world: &World) {
        let home = Home::new(&world.store).await;
        let (store, ws, book) = (&world.store, home.workspace, notebook_id());
        let files = vec![file("/a.md", "A summary of the garden"), file("/b.md", "Summer in the garden"), file("/c.md", "It's winter")];
        store.index_put(ws, book, files).await.unwrap();
        let paths = async |query: &str| {
            let mut found: Vec<_> = store.search(ws, book, query, 10).await.unwrap().into_iter().map(|hit| hit.path).collect();
            found.sort();
            found
        };
        assert_eq!(paths("summ").await, ["/a.md", "/b.md"]);
        assert_eq!(paths("garden summa").await, ["/a.md"]);
        assert_eq!(paths("gard summary").await, [""; 0], "only of the last one");
        assert_eq!(paths("wint").await, ["/c.md"]);
        assert!(store.search(ws, book, "summa", 1).await.unwrap()[0].snippet.contains("[summary]"));
    }

    async fn what_a_person_types_is_words_and_never_a_query_language(world: &World) {
        let home = Home::new(&world.store).await;
        let (store, ws, book) = (&world.store, home.workspace, notebook_id());
        store.index_put(ws, book, vec![file("/a.md", "say \"hello\" and near the body: end-to-end OR not")]).await.unwrap();
        for query in ["\"hello", "hello\"", "hello*", "body:", "(hello)", "end-to-end", "hello & near", "- hello", "hello\0near"] {
            let hits = store.search(ws, book, query, 10).await.unwrap();
            assert_eq!(hits.len(), 1, "{query}");
        }
        for query in ["", "   ", "\"", "*", "()", "!!", "\0", "body:missing", "hello OR missing", "hello | missing", "NOT missing"] {
            assert!(store.search(ws, book, query, 10).await.unwrap().is_empty(), "{query}");
        }
    }

    async fn the_index_follows_the_files_and_stays_in_its_notebook(world: &World) {
        let home = Home::new(&world.store).await;
        let other = Home::new(&world.store).await;
        let (store, ws, book) = (&world.store, home.workspace, notebook_id());
        store.index_put(ws, book, vec![file("/a.md", "apple"), file("/b.md", "apple pear")]).await.unwrap();
        store.index_put(ws, notebook_id(), vec![file("/elsewhere.md", "apple")]).await.unwrap();
        store.index_put(other.workspace, book, vec![file("/foreign.md", "apple")]).await.unwrap();
        store.index_put(ws, book, vec![IndexedFile { modified: 8, ..file("/a.md", "plum") }]).await.unwrap();
        let state = store.index_state(ws, book).await.unwrap();
        assert_eq!(state, [("/a.md".to_owned(), (4, 8)), ("/b.md".to_owned(), (10, 7))].into());
        let paths = async |query: &str| {
            store.search(ws, book, query, 10).await.unwrap().into_iter().map(|hit| hit.path).collect::<Vec<_>>()
        };
        assert_eq!(paths("apple").await, ["/b.md"], "not what it held before, not what others hold");
        assert_eq!(paths("plum").await, ["/a.md"]);
        store.index_remove(ws, book, vec!["/b.md".into(), "/never.md".into()]).await.unwrap();
        assert_eq!(paths("pear").await, [""; 0]);
        assert_eq!(store.index_state(ws, book).await.unwrap().len(), 1);
    }

    async fn a_large_text_of_many_words_is_indexed(world: &World) {
        let home = Home::new(&world.store).await;
        let (store, ws, book) = (&world.store, home.workspace, notebook_id());
        let text: String = (0..100_000_u32).map(|n| format!("word{n:x} ")).collect();
        store.index_put(ws, book, vec![file("/large.md", &text)]).await.unwrap();
        assert_eq!(store.search(ws, book, "word1a", 10).await.unwrap().len(), 1);
    }
}
