//! The notes of the sample notebook. They and the demo model belong together: the model's tour is about these files,
//! and a test keeps it so.

/// The sample notebook: each file's path and text.
#[must_use]
pub const fn sample_files() -> &'static [(&'static str, &'static str)] {
    &[
        ("/ideas.md", include_str!("samples/ideas.md")),
        ("/meeting.md", include_str!("samples/meeting.md")),
        ("/projects/garden.md", include_str!("samples/projects/garden.md")),
        ("/recipe.md", include_str!("samples/recipe.md")),
        ("/todo.md", include_str!("samples/todo.md")),
        ("/welcome.md", include_str!("samples/welcome.md")),
    ]
}
