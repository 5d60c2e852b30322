//! What the demo model says and does next. Each task is a chain: what the tools have not said yet is asked for, and
//! when all is known the answer is made of it.

use adjutant_core::message::{ModelRequest, RawCall};
use serde_json::Value;

use super::desk::{Desk, Progress, Trouble, argument_of, explain, missing, output, quote, trouble};
use super::intent::{Intent, Keep};
use super::tidy::{Extent, Tidied, tidy};
use super::{Reply, digest};

/// Notes read for one task.
const NOTES: usize = 12;
/// Notes changed by one task, so that nobody has to look at a pile of differences.
const CHANGED_NOTES: usize = 3;
/// Lines of a search shown.
const HITS: usize = 12;
/// Where a summary goes.
const SUMMARY: &str = "/summary.md";
/// The key under which facts are kept.
const FACTS: &str = "remembered";

const ABILITIES: &str = "\
- **tidy the welcome notes**: I read them, correct the spelling, drop what is done, and ask you before I write
- **summarise the notes**: a short summary in their own words, saved if you like
- **search** *something*, or **what files are here**
- **create a note about** *something*
- **remember that** *something*, and later **what do you remember**";

const REAL_MODEL: &str = "\
I am only a script and cost nothing. For everything else give this agent a real model: add a provider with its key to the \
configuration, or start a local one (Ollama, llama.cpp, LM Studio or vLLM) and name its address, then choose one of its \
models for the agent. The rules, the questions before a change and the log stay the same.";

/// The next thing to say and do.
pub(super) fn reply(request: &ModelRequest) -> Reply {
    let desk = Desk::new(request);
    match Intent::of(&desk.view.user, &desk.view.before) {
        Intent::Tidy(extent) => tidy_notes(&desk, extent),
        Intent::Summarise(keep) => summarise(&desk, keep),
        Intent::Search(what) if what.is_empty() => Reply::say("What should I search for? Say: search *something*."),
        Intent::Search(what) => search(&desk, &what),
        Intent::Files => files(&desk),
        Intent::Read(what) => read(&desk, &what),
        Intent::Create(about) if about.is_empty() => Reply::say("About what? Say: create a note about *something*."),
        Intent::Create(about) => create(&desk, &about),
        Intent::Remember(fact) if fact.is_empty() => Reply::say("Remember what? Say: remember that *something*."),
        Intent::Remember(fact) => remember(&desk, &fact),
        Intent::Recall => recall(&desk),
        Intent::Help => Reply::say(format!("I am the built-in demo model. I can:\n\n{ABILITIES}\n\n{REAL_MODEL}")),
        Intent::Greet => Reply::say(format!("Hello! I am the built-in demo model. Try one of these:\n\n{ABILITIES}")),
        Intent::Thanks => Reply::say("You are welcome."),
        Intent::Other => Reply::say(format!(
            "That is beyond me: I am the built-in demo model and understand only a few sentences.\n\n{ABILITIES}\n\n{REAL_MODEL}"
        )),
    }
}

fn act(text: impl Into<String>, calls: Vec<RawCall>) -> Reply {
    Reply { text: text.into(), calls }
}

/// A call of a tool that is there, or the reason why not.
fn act_once(desk: &Desk<'_>, text: &str, tool: &str, arguments: &[(&str, Value)]) -> Reply {
    desk.call(tool, arguments).map_or_else(|| Reply::say(missing(tool)), |call| act(text, vec![call]))
}

fn is_note(path: &str) -> bool {
    [".md", ".txt", ".markdown"].iter().any(|ending| path.to_ascii_lowercase().ends_with(ending))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The notes of the notebook, read: those the person named, or else all, to-do lists first.
fn notes(desk: &Desk<'_>) -> Progress<Vec<(String, String)>> {
    let files = match desk.files() {
        Progress::Ready(files) => files,
        Progress::Call(calls) => return Progress::Call(calls),
        Progress::Stuck(why) => return Progress::Stuck(why),
    };
    let mut wanted: Vec<_> = files.into_iter().filter(|path| is_note(path) && path != SUMMARY).collect();
    let said = desk.view.user.to_lowercase();
    let named: Vec<_> = wanted.iter().filter(|path| said.contains(&file_name(path).to_lowercase())).cloned().collect();
    if !named.is_empty() {
        wanted = named;
    }
    wanted.sort_by_key(|path| {
        (!file_name(path).to_lowercase().starts_with("todo"), path.matches('/').count(), path.clone())
    });
    wanted.truncate(NOTES);
    desk.notes(&wanted)
}

fn tidy_notes(desk: &Desk<'_>, extent: Extent) -> Reply {
    let (extent, asks_for_less) = less(desk, extent);
    let written = desk.calls("write_file").next().is_some() && !asks_for_less;
    let notes = match notes(desk) {
        Progress::Ready(notes) => notes,
        // Old outputs leave a long conversation; what was written is still to be told.
        Progress::Call(_) | Progress::Stuck(_) if written => Vec::new(),
        Progress::Call(calls) => return act(looking(&calls), calls),
        Progress::Stuck(why) => return Reply::say(why),
    };
    let tidied = notes.iter().map(|(path, text)| (path.as_str(), tidy(text, extent)));
    let work: Vec<_> = tidied.filter(|(_, tidied)| tidied.changed).collect();
    if written { tidy_report(desk, notes.len(), &work) } else { tidy_plan(desk, notes.len(), &work) }
}

/// How much is to be done after what people answered to the changes that were proposed, and whether the last answer asks for
/// another amount than was proposed then.
fn less(desk: &Desk<'_>, extent: Extent) -> (Extent, bool) {
    desk.calls("write_file").fold((extent, false), |(extent, _), step| match trouble(step) {
        Some(Trouble::Rejected(words)) => match Intent::of(words, "") {
            Intent::Tidy(wanted) if wanted != Extent::All && wanted != extent => (wanted, true),
            _ => (extent, false),
        },
        Some(Trouble::Denied(_) | Trouble::Failed(_)) | None => (extent, false),
    })
}

/// What is to be changed, and the calls that do it.
fn tidy_plan(desk: &Desk<'_>, notes: usize, work: &[(&str, Tidied)]) -> Reply {
    let work = &work[..work.len().min(CHANGED_NOTES)];
    if work.is_empty() {
        return Reply::say(match notes {
            0 => "There are no notes here that I could tidy.".to_owned(),
            count => format!("I read {} and found nothing to tidy.", counted(count, "note")),
        });
    }
    let plan = work.iter().map(|(path, tidied)| format!("`{path}`: {}", changes(tidied).join("; ")));
    let plan = plan.collect::<Vec<_>>().join("\n");
    let write = |(path, tidied): &(&str, Tidied)| {
        desk.call("write_file", &[("path", (*path).into()), ("content", tidied.text.as_str().into())])
    };
    let calls: Vec<_> = work.iter().filter_map(write).collect();
    if calls.is_empty() {
        Reply::say(format!("This is what I would do:\n\n{plan}\n\n{}", missing("write_file")))
    } else {
        act(format!("I read {}. I would change this:\n{plan}", counted(notes, "note")), calls)
    }
}

/// What became of the changes.
fn tidy_report(desk: &Desk<'_>, notes: usize, work: &[(&str, Tidied)]) -> Reply {
    let mut text = String::new();
    let steps: Vec<_> = desk.calls("write_file").map(|step| (argument_of(step, "path"), step)).collect();
    for (at, (path, step)) in steps.iter().enumerate() {
        if steps[at + 1..].iter().any(|(later, _)| later == path) {
            continue;
        }
        let ours = work.iter().find(|(known, _)| known == path).map(|(_, tidied)| tidied);
        match (trouble(step), ours) {
            (Some(trouble), _) => text.push_str(&not_written(path, &trouble)),
            (None, None) => text.push_str(&format!("`{path}` is written.\n")),
            (None, Some(ours)) if ours.text != argument_of(step, "content") => {
                text.push_str(&format!("`{path}` is written, with your own changes to my draft.\n"));
            }
            (None, Some(ours)) => {
                text.push_str(&format!("`{path}` is tidy now:\n"));
                changes(ours).iter().for_each(|change| text.push_str(&format!("- {change}\n")));
            }
        }
    }
    let left = work.len().saturating_sub(CHANGED_NOTES);
    let untouched = notes - work.len();
    if untouched > 0 {
        text.push_str(&format!("\nI also read {} that needed nothing.", counted(untouched, "other note")));
    }
    if left > 0 {
        text.push_str(&format!("\nAnother {} could do with it too: ask me again.", counted(left, "note")));
    }
    Reply::say(text.trim_end())
}

fn not_written(path: &str, trouble: &Trouble<'_>) -> String {
    match trouble {
        Trouble::Rejected(words) => format!(
            "You said no to my change of `{path}`, so it is as it was. ({}) I can do less if you like: say \"tidy, but keep \
             the done items\" or \"only fix the spelling\".\n",
            quote(words)
        ),
        Trouble::Denied(words) => {
            format!("The rules do not let me write `{path}`, so it is as it was. They say: {}\n", quote(words))
        }
        Trouble::Failed(words) => {
            format!("Writing `{path}` did not work. It said: {}\n", quote(words))
        }
    }
}

/// What was done to a note, a phrase each.
fn changes(tidied: &Tidied) -> Vec<String> {
    let list = |items: &[String]| items.iter().take(6).cloned().collect::<Vec<_>>().join(", ");
    let mut phrases = Vec::new();
    if !tidied.fixes.is_empty() {
        let fixes: Vec<_> = tidied.fixes.iter().map(|(slip, right)| format!("{slip} → {right}")).collect();
        phrases.push(format!("{} corrected ({})", counted(fixes.len(), "spelling"), list(&fixes)));
    }
    if !tidied.done.is_empty() {
        phrases.push(format!("{} removed ({})", counted(tidied.done.len(), "done item"), list(&tidied.done)));
    }
    if !tidied.doubled.is_empty() {
        phrases.push(format!("{} removed ({})", counted(tidied.doubled.len(), "doubled item"), list(&tidied.doubled)));
    }
    if !tidied.moved.is_empty() {
        phrases.push(format!(
            "{} moved to the top ({})",
            counted(tidied.moved.len(), "urgent item"),
            list(&tidied.moved)
        ));
    }
    if phrases.is_empty() {
        phrases.push("blank lines and list marks put in order".to_owned());
    }
    phrases
}

fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn looking(calls: &[RawCall]) -> &'static str {
    if calls.iter().any(|call| call.name == "read_file") { "Now I read them." } else { "Let me see what is here." }
}

fn summarise(desk: &Desk<'_>, keep: Keep) -> Reply {
    let notes = match notes(desk) {
        Progress::Call(calls) => return act(looking(&calls), calls),
        Progress::Stuck(why) => return Reply::say(why),
        Progress::Ready(notes) if notes.is_empty() => return Reply::say("There are no notes here to summarise."),
        Progress::Ready(notes) => notes,
    };
    let summary = digest::summary(&notes);
    let saved = desk.calls("create_file").chain(desk.calls("write_file")).next();
    match (keep, saved) {
        (Keep::Say, _) => Reply::say(format!(
            "{} in short:\n\n{summary}\nShall I keep this in `{SUMMARY}`? Then say: save the summary.",
            counted(notes.len(), "note")
        )),
        (Keep::Save, None) => {
            let there = desk.calls("list_files").filter_map(output).any(|listing| listing.contains(SUMMARY));
            let tool = if there && desk.has("write_file") { "write_file" } else { "create_file" };
            let content = format!("# Summary of the notes\n\n{summary}");
            let text = format!("I would like to keep the summary in `{SUMMARY}`.");
            act_once(desk, &text, tool, &[("path", SUMMARY.into()), ("content", content.into())])
        }
        (Keep::Save, Some(step)) => Reply::say(match trouble(step) {
            // A person may have named another place.
            None => {
                format!("The summary of {} is in `{}` now.", counted(notes.len(), "note"), argument_of(step, "path"))
            }
            Some(trouble) => format!("{}Here it is instead:\n\n{summary}", not_saved(&trouble)),
        }),
    }
}

fn not_saved(trouble: &Trouble<'_>) -> String {
    match trouble {
        Trouble::Rejected(_) => "You said no, so nothing was saved. ".to_owned(),
        Trouble::Denied(words) => format!("The rules do not let me save it ({}). ", quote(words)),
        Trouble::Failed(words) => format!("Saving did not work ({}). ", quote(words)),
    }
}

fn search(desk: &Desk<'_>, what: &str) -> Reply {
    let tool = "search_content";
    let Some(step) = desk.calls(tool).next() else {
        let name = desk.argument(tool, &["query", "pattern", "text"]);
        return act_once(desk, &format!("I search for \"{what}\"."), tool, &[(name, what.into())]);
    };
    let Some(found) = output(step) else { return Reply::say(explain(Some(step))) };
    let lines: Vec<_> = found.lines().filter(|line| !line.trim().is_empty() && *line != "Nothing found.").collect();
    let shown = lines.iter().take(HITS).copied().collect::<Vec<_>>().join("\n");
    Reply::say(match lines.len() {
        0 => format!("I found nothing about \"{what}\"."),
        count if count > HITS => {
            format!("This is what I found about \"{what}\" (the first {HITS} of {count} lines):\n\n{shown}")
        }
        _ => format!("This is what I found about \"{what}\":\n\n{shown}"),
    })
}

fn files(desk: &Desk<'_>) -> Reply {
    match desk.files() {
        Progress::Call(calls) => act(looking(&calls), calls),
        Progress::Stuck(why) => Reply::say(why),
        Progress::Ready(files) if files.is_empty() => Reply::say("There are no files here yet."),
        Progress::Ready(files) => {
            let lines: Vec<_> = files.iter().map(|path| format!("- `{path}`")).collect();
            Reply::say(format!("There {} here:\n\n{}", is_are(files.len()), lines.join("\n")))
        }
    }
}

fn is_are(count: usize) -> String {
    if count == 1 { "is 1 file".to_owned() } else { format!("are {count} files") }
}

fn read(desk: &Desk<'_>, what: &str) -> Reply {
    let files = match desk.files() {
        Progress::Call(calls) => return act(looking(&calls), calls),
        Progress::Stuck(why) => return Reply::say(why),
        Progress::Ready(files) => files,
    };
    let (what, wanted) = (what.trim_start_matches('/'), what.to_lowercase());
    let names = |path: &&String| wanted.contains(file_name(path).to_lowercase().split('.').next().unwrap_or_default());
    let Some(path) = files.iter().find(names) else {
        return Reply::say(format!("I found no file that is called \"{what}\". Ask me: what files are here?"));
    };
    match desk.notes(std::slice::from_ref(path)) {
        Progress::Call(calls) => act(format!("I read `{path}`."), calls),
        Progress::Stuck(why) => Reply::say(why),
        Progress::Ready(notes) => Reply::say(match notes.first() {
            Some((path, text)) => format!("`{path}` says:\n\n{}", text.trim_end()),
            None => format!("`{path}` is too long for me."),
        }),
    }
}

fn create(desk: &Desk<'_>, about: &str) -> Reply {
    let path = format!("/{}.md", slug(about));
    let Some(step) = desk.calls("create_file").next() else {
        let mut title = about.to_owned();
        if let Some(first) = title.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let content = format!("# {title}\n\nWhat I know about it:\n\n-\n\nWhat I want to find out:\n\n-\n");
        let text = format!("I would like to make `{path}`.");
        return act_once(desk, &text, "create_file", &[("path", path.into()), ("content", content.into())]);
    };
    Reply::say(match trouble(step) {
        None => format!("`{}` is there now, with a title and two questions to begin with.", argument_of(step, "path")),
        Some(Trouble::Rejected(_)) => {
            format!("You said no, so there is no `{path}`. Tell me another topic if you like.")
        }
        Some(Trouble::Denied(words)) => format!("The rules do not let me make `{path}`. They say: {}", quote(words)),
        Some(Trouble::Failed(words)) => format!("I could not make `{path}`. It said: {}", quote(words)),
    })
}

fn slug(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).take(6);
    let slug = words.map(str::to_lowercase).collect::<Vec<_>>().join("-");
    if slug.is_empty() { "note".to_owned() } else { slug }
}

/// The facts in the store: lines that begin as ours do. Anything else a tool says (that there is nothing, say) is none.
fn facts(output: &str) -> Vec<String> {
    let text = serde_json::from_str::<String>(output.trim()).unwrap_or_else(|_| output.to_owned());
    text.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
}

fn remember(desk: &Desk<'_>, fact: &str) -> Reply {
    if !desk.has("kv_set") || !desk.has("kv_get") {
        return Reply::say(missing(if desk.has("kv_get") { "kv_set" } else { "kv_get" }));
    }
    let Some(known) = desk.calls("kv_get").next() else {
        return act_once(desk, "Let me see what I already know.", "kv_get", &[("key", FACTS.into())]);
    };
    let Some(step) = desk.calls("kv_set").next() else {
        let mut lines = output(known).map(|text| facts(&text)).unwrap_or_default();
        lines.retain(|line| line != fact);
        lines.push(fact.to_owned());
        let value: String = lines.iter().map(|line| format!("- {line}\n")).collect();
        return act_once(desk, "I write it down.", "kv_set", &[("key", FACTS.into()), ("value", value.into())]);
    };
    Reply::say(match trouble(step) {
        None => format!("I will remember: {fact}. Ask me any time what I remember."),
        Some(_) => explain(Some(step)),
    })
}

fn recall(desk: &Desk<'_>) -> Reply {
    let Some(step) = desk.calls("kv_get").next() else {
        return act_once(desk, "Let me think.", "kv_get", &[("key", FACTS.into())]);
    };
    let known = output(step).map(|text| facts(&text)).unwrap_or_default();
    let lines: String = known.iter().map(|fact| format!("\n- {fact}")).collect();
    Reply::say(match (known.len(), trouble(step)) {
        (0, Some(Trouble::Rejected(_) | Trouble::Denied(_))) => explain(Some(step)),
        (0, _) => "Nothing yet. Say: remember that *something*.".to_owned(),
        (_, _) => format!("I remember:\n{lines}"),
    })
}
