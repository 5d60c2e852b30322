//! Entries of the audit as lines of a table.

use adjutant_engine::AuditEntry;

/// The columns.
pub(crate) const AUDIT_COLUMNS: [&str; 13] = [
    "time", "stream", "seq", "kind", "by", "agent", "run_id", "tool", "path", "verdict", "rule", "is_error", "summary",
];

/// One entry as a line.
pub(crate) fn audit_row(entry: &AuditEntry) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let cells = [
        entry.time.to_string(),
        entry.stream.to_string(),
        entry.seq.to_string(),
        entry.kind.clone(),
        text(&entry.by),
        text(&entry.agent),
        entry.run_id.map(|run| run.to_string()).unwrap_or_default(),
        text(&entry.tool),
        text(&entry.path),
        text(&entry.verdict),
        text(&entry.rule),
        entry.is_error.to_string(),
        entry.summary.clone(),
    ];
    cells.iter().map(|cell| safe(cell)).collect::<Vec<_>>().join(",")
}

/// A cell that no spreadsheet takes for a formula, and that stays one cell.
pub(super) fn safe(cell: &str) -> String {
    let cell: String = cell.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let formula = cell.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠', '|', '%']);
    let cell = if formula { format!("\'{cell}") } else { cell };
    if cell.contains(['"', ',', ';', '\'']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn no_cell_becomes_a_formula_or_two_cells() {
        assert_eq!(safe("plain text"), "plain text");
        assert_eq!(safe("=1+1"), "\"\'=1+1\"");
        for begin in ["=", "+", "-", "@", " =", "\t=", "\r@", "＝"] {
            assert!(safe(&format!("{begin}cmd")).trim_start_matches('"').starts_with('\''), "{begin:?}");
        }
        assert_eq!(safe("a,\"b\"\nc"), "\"a,\"\"b\"\" c\"");
    }
}
