//! Stories of whole runs through the embeddable door: scripted model, real SQLite, real files.

mod story;
