//! What a file may say, and what is said about one that is wrong.

use adjutant_core::guard::policy::Autonomy;

use super::*;

fn known() -> Known {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    Known { tools: words(&["read_file", "write_file", "delete_file"]), toolsets: words(&["files", "kv"]) }
}

fn problems(text: &str) -> Vec<String> {
    let found = parse(Path::new("research.md"), text, &known()).unwrap_err();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_is_fields_and_instructions() {
    let text = "---\nname: Research\ndescription: Reads a lot.\ntools: read_file, write_file\ndisallowedTools: [delete_file]\n\
                maxTurns: 7\nautonomy: none\nscope:\n  notebooks: ['*']\n  folders: [/notes]\n---\n\nRead first.\n\nThen answer.\n";
    let file = parse(Path::new("agents/research.md"), text, &known()).unwrap();
    assert_eq!((file.config.name.as_str(), file.config.slug.as_str()), ("Research", "research"));
    assert_eq!(file.config.tools.iter().collect::<Vec<_>>(), ["read_file", "write_file"]);
    assert_eq!(file.config.denied_tools.iter().collect::<Vec<_>>(), ["delete_file"]);
    assert_eq!((file.config.max_turns, file.config.autonomy), (7, Autonomy::None));
    assert_eq!(file.config.system_prompt, "Read first.\n\nThen answer.");
    assert_eq!(file.config.reach(), "read in /notes");
}

#[test]
fn without_tools_an_agent_only_reads() {
    let file = parse(Path::new("a.md"), "---\r\nname: A\r\n---\r\nHello.\r\n", &known()).unwrap();
    assert!(file.config.can_read && !file.config.can_write && !file.config.can_create && !file.config.can_delete);
    assert_eq!(file.config.toolsets.iter().collect::<Vec<_>>(), ["files"]);
}

#[test]
fn every_problem_has_its_line_and_the_word_that_was_meant() {
    let text = "---\nname: Research\nmodle: default\nmax_turns: many\nautonomy: lots\ntools: read_fil\n\
                scope:\n  folder: [/notes]\n---\nHello.\n";
    assert_eq!(
        problems(text),
        [
            "research.md:3: unknown field `modle`, did you mean `model`?",
            "research.md:4: max_turns: invalid type: string \"many\", expected u32",
            "research.md:5: autonomy: unknown value `lots`, known are none, low, medium, high, full",
            "research.md:6: tools: there is no tool `read_fil`, did you mean `read_file`?",
            "research.md:7: scope: unknown field `folder`, did you mean `folders`?",
        ]
    );
}

#[test]
fn values_that_cannot_be_saved_are_found_by_their_field() {
    let text = "---\nname: Research\nmax_turns: 900\nscope:\n  folders: ['/a**']\n---\n";
    let found = problems(text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0], "research.md:3: max_turns: use 1 to 200");
    assert!(found[1].starts_with("research.md:4: scope.folders[0]: `/a**`"), "{}", found[1]);
}

#[test]
fn a_file_that_is_not_one_says_how_it_should_begin() {
    for text in ["", "Hello", "---\nname: A\n", "--- x\nname: A\n---\n"] {
        assert_eq!(problems(text).len(), 1, "{text:?}");
    }
    assert_eq!(problems("---\n---\nHello\n"), ["research.md:1: the field `name` is missing"]);
    assert!(problems("---\nname: [\n---\n")[0].contains("cannot be read"));
}

#[test]
fn a_file_an_agent_and_the_manual_know_the_same_fields() {
    let unknown = serde_json::from_value::<AgentSpec>(json!({"no such field": 1})).unwrap_err().to_string();
    let (_, expected) = unknown.split_once("expected one of").unwrap();
    let mut spec: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let mut file = FIELDS.to_vec();
    let manual = include_str!("../../../../docs/agents.md");
    let table = manual.split_once("| field | ").unwrap().1.split("\n\n").next().unwrap();
    let names = |line: &'static str| line.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2);
    let mut told: Vec<&str> = table.lines().flat_map(names).collect();
    for list in [&mut spec, &mut file, &mut told] {
        list.sort_unstable();
    }
    assert_eq!(file, spec);
    assert_eq!(told, spec);
}

#[test]
fn what_is_written_reads_as_the_same_agent() {
    let known = crate::instance::known(&adjutant_engine::tools::Registry::builtin());
    for spec in adjutant_engine::templates() {
        let config = spec.clone().complete().unwrap();
        let text = write(&config, &known);
        assert_eq!(parse(Path::new(""), &text, &known).unwrap().config, config, "{text}");
    }
}

#[test]
fn a_default_that_hangs_on_another_field_is_written_out() {
    let text = "---\nname: A\ntools: [read_file]\ntoolsets: [files]\nbudget:\n  run_usd: 1\n---\nHello.\n";
    let config = parse(Path::new("a.md"), text, &known()).unwrap().config;
    assert_eq!(parse(Path::new(""), &write(&config, &known()), &known()).unwrap().config, config);
}

#[test]
fn a_schema_of_answers_is_written_as_it_is_and_a_bad_one_is_found() {
    let text = "---\nname: Clerk\noutput_schema:\n  type: object\n  required: [city]\n---\nAnswer.\n";
    let config = parse(Path::new("clerk.md"), text, &known()).unwrap().config;
    assert_eq!(config.output_schema, Some(json!({"type": "object", "required": ["city"]})));
    let wrong = problems("---\nname: Clerk\noutput_schema: { type: colour }\n---\n");
    assert!(wrong.len() == 1 && wrong[0].contains("output_schema"), "{wrong:?}");
}
