//! The order of the sources, and what is said when one of them is wrong.

use super::*;

fn env(pairs: &[(&str, &str)]) -> Environment {
    Environment(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

fn with_file(text: &str) -> (tempfile::TempDir, Flags) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    (folder, Flags { config: Some(path), ..Flags::default() })
}

fn problems(flags: &Flags, variables: &[(&str, &str)]) -> Vec<String> {
    Config::load(flags, &env(variables)).unwrap_err().problems
}

#[test]
fn a_flag_outranks_a_variable_which_outranks_the_file_which_outranks_the_default() {
    let (_folder, mut flags) = with_file("listen = \"127.0.0.1:1\"\ndefault_model = \"lab/a\"\n");
    let home = ("HOME", "/home/me");
    let load = |flags: &Flags, more: &[(&str, &str)]| Config::load(flags, &env(&[&[home], more].concat())).unwrap();
    let config = load(&Flags::default(), &[]);
    assert_eq!(config.listen, Setting { value: "127.0.0.1:7878".parse().unwrap(), origin: Origin::Default });
    assert_eq!(config.data.value, Path::new("/home/me/.local/share/adjutant"));
    let config = load(&flags, &[]);
    assert_eq!((config.listen.value.port(), config.default_model.value.as_str()), (1, "lab/a"));
    assert!(matches!(config.default_model.origin, Origin::File(_, 2)));
    let config = load(&flags, &[("ADJUTANT_LISTEN", "127.0.0.1:2")]);
    assert_eq!(
        (config.listen.value.port(), config.listen.origin.to_string()),
        (2, "environment ADJUTANT_LISTEN".to_owned())
    );
    flags.listen = Some("127.0.0.1:3".to_owned());
    let config = load(&flags, &[("ADJUTANT_LISTEN", "127.0.0.1:2")]);
    assert_eq!((config.listen.value.port(), config.listen.origin), (3, Origin::Flag));
    flags.durability = Some("normal".to_owned());
    let config = load(&flags, &[("ADJUTANT_DURABILITY", "full")]);
    assert_eq!((config.durability.value, config.durability.origin), (Durability::Normal, Origin::Flag));
}

#[test]
fn the_data_directory_follows_xdg_and_needs_some_home() {
    let config = Config::load(&Flags::default(), &env(&[("XDG_DATA_HOME", "/data"), ("HOME", "/home/me")])).unwrap();
    assert_eq!(config.data.value, Path::new("/data/adjutant"));
    let config =
        Config::load(&Flags::default(), &env(&[("XDG_DATA_HOME", "not/absolute"), ("HOME", "/home/me")])).unwrap();
    assert_eq!(config.data.value, Path::new("/home/me/.local/share/adjutant"));
    let none = Config::load(&Flags::default(), &env(&[])).unwrap_err();
    assert!(none.message.contains("HOME is not set"), "{}", none.message);
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let (_folder, flags) =
        with_file("encrypt = \"maybe\"\n[providers.a]\nkind = \"opnai\"\n[providers.b]\nkind = \"scripted\"\n");
    let found = problems(&flags, &[("HOME", "/home/me"), ("ADJUTANT_DURABILITY", "some"), ("ADJUTANT_LISTEN", "x")]);
    assert_eq!(found.len(), 5, "{found:?}");
    assert_eq!(found[0], "environment ADJUTANT_LISTEN: listen `x` has to be an address such as 127.0.0.1:7878");
    assert!(found[1].ends_with("config.toml:1: encrypt `maybe` has to be true or false"), "{}", found[1]);
    assert!(
        found[3].ends_with("config.toml:2: provider `a`: unknown kind `opnai`, did you mean `openai`?"),
        "{}",
        found[3]
    );
}

#[test]
fn a_password_is_never_shown() {
    let variables =
        [("HOME", "/home/me"), ("ADJUTANT_DATABASE_URL", "postgres://me:secret@db/x"), ("OPENAI_API_KEY", "sk-secret")];
    let config = Config::load(&Flags::default(), &env(&variables)).unwrap();
    let shown: Vec<String> =
        config.shown().iter().map(|(key, value, origin)| format!("{key} {value} {origin}")).collect();
    assert!(!shown.join("\n").contains("secret"), "{shown:?}");
    assert!(!format!("{config:?}").contains("secret"));
    let wrong =
        problems(&Flags::default(), &[("HOME", "/home/me"), ("ADJUTANT_DATABASE_URL", "mysql://me:secret@db/x")]);
    assert_eq!(wrong, ["environment ADJUTANT_DATABASE_URL: database_url has to be `sqlite` or postgres://…"]);
}

#[test]
fn a_key_in_the_environment_becomes_a_provider_and_a_missing_one_is_named() {
    let config = Config::load(&Flags::default(), &env(&[("HOME", "/home/me"), ("OPENAI_API_KEY", "k")])).unwrap();
    assert_eq!(config.providers[0].to_string(), "openai at the well-known address, key from OPENAI_API_KEY");
    let (_folder, flags) = with_file(
        "[providers.lab]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"LAB_KEY\"\n",
    );
    let config = Config::load(&flags, &env(&[("HOME", "/home/me")])).unwrap();
    assert_eq!(config.providers[0].missing.as_deref(), Some("the variable LAB_KEY is not set"));
    let config = Config::load(&flags, &env(&[("HOME", "/home/me"), ("LAB_KEY", "k")])).unwrap();
    assert_eq!(config.providers[0].missing, None);
}

#[test]
fn every_vendor_is_a_kind_and_its_well_known_key_goes_to_its_own_address_only() {
    let home = ("HOME", "/home/me");
    let config =
        Config::load(&Flags::default(), &env(&[home, ("ANTHROPIC_API_KEY", "k"), ("GROQ_API_KEY", "k")])).unwrap();
    let names: Vec<_> = config.providers.iter().map(|provider| provider.name.as_str()).collect();
    assert_eq!(names, ["anthropic", "groq"]);

    let (_folder, flags) = with_file("[providers.claude]\nkind = \"anthropic\"\n");
    let config = Config::load(&flags, &env(&[home])).unwrap();
    let why = "neither api_key_env nor the variable ANTHROPIC_API_KEY is set";
    assert_eq!(config.providers[0].missing.as_deref(), Some(why));
    let config = Config::load(&flags, &env(&[home, ("ANTHROPIC_API_KEY", "k")])).unwrap();
    assert_eq!(config.providers[0].to_string(), "anthropic at the well-known address, key from ANTHROPIC_API_KEY");

    let text = "[providers.proxy]\nkind = \"anthropic\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    let (_folder, flags) = with_file(text);
    let config = Config::load(&flags, &env(&[home, ("ANTHROPIC_API_KEY", "k")])).unwrap();
    assert_eq!(config.providers[0].to_string(), "anthropic at http://127.0.0.1:9/v1");

    let (_folder, flags) = with_file("[providers.cloud]\nkind = \"bedrock\"\n");
    let keys = [home, ("AWS_REGION", "eu-west-1"), ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let config = Config::load(&flags, &env(&keys)).unwrap();
    assert_eq!(config.providers[0].to_string(), "bedrock at the well-known address, key from AWS_ACCESS_KEY_ID");
    assert!(!format!("{config:?}").contains("secret"));
}

#[test]
fn a_provider_has_as_many_calls_at_once_as_the_operator_says() {
    let (_folder, flags) =
        with_file("[providers.few]\nkind = \"ollama\"\ncalls_at_once = 1\n[providers.many]\nkind = \"ollama\"\n");
    let config = Config::load(&flags, &env(&[("HOME", "/home/me")])).unwrap();
    let most = |provider: &Provider| match &provider.kind {
        Kind::Remote(remote) => remote.calls_at_once.get(),
        Kind::Scripted(_) => 0,
    };
    assert_eq!(config.providers.iter().map(most).collect::<Vec<_>>(), [1, 64]);
    for wrong in ["0", "-1", "\"many\""] {
        let (_folder, flags) = with_file(&format!("[providers.one]\nkind = \"ollama\"\ncalls_at_once = {wrong}\n"));
        let said = problems(&flags, &[("HOME", "/home/me")]);
        assert!(
            said.iter().any(|problem| problem.contains("`calls_at_once` has to be a number from 1 on")),
            "{said:?}"
        );
    }
}

#[test]
fn a_provider_has_the_models_that_the_operator_lists() {
    let cloud = "[providers.cloud]\nkind = \"ollama\"\nmodels = [\"gpt-5.4\", \"prod\"]\n";
    let (_folder, flags) = with_file(&format!("{cloud}[providers.usual]\nkind = \"ollama\"\n"));
    let config = Config::load(&flags, &env(&[("HOME", "/home/me")])).unwrap();
    let models = |provider: &Provider| match &provider.kind {
        Kind::Remote(remote) => remote.models.clone(),
        Kind::Scripted(_) => Vec::new(),
    };
    let found: Vec<_> = config.providers.iter().map(models).collect();
    assert_eq!(found, [vec!["gpt-5.4".to_owned(), "prod".to_owned()], Vec::new()]);
    let (_folder, flags) = with_file("[providers.one]\nkind = \"ollama\"\nregion = [\"a\"]\n");
    let said = problems(&flags, &[("HOME", "/home/me")]);
    assert!(said.iter().any(|problem| problem.contains("`region` has to be a text")), "{said:?}");
}

#[test]
fn a_configuration_file_that_was_named_has_to_be_there() {
    let flags = Flags { config: Some(PathBuf::from("/nowhere/config.toml")), ..Flags::default() };
    assert_eq!(problems(&flags, &[("HOME", "/home/me")]).len(), 1);
}

#[test]
fn traces_go_nowhere_unless_somebody_says_where() {
    let (_folder, flags) = with_file("otlp_endpoint = \"http://file:4318\"\n");
    let place = |flags: &Flags, more: &[(&str, &str)]| {
        let config = Config::load(flags, &env(&[&[("HOME", "/home/me")], more].concat())).unwrap();
        config.traces.map(|traces| (traces.value.endpoint, traces.value.service))
    };
    let to = |endpoint: &str| Some((endpoint.to_owned(), "adjutant".to_owned()));
    let (base, exact) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let none = Flags::default();
    assert_eq!(place(&none, &[]), None);
    assert_eq!(place(&flags, &[]), to("http://file:4318/v1/traces"));
    assert_eq!(place(&none, &[(base, "http://a:1/")]), to("http://a:1/v1/traces"));
    assert_eq!(place(&flags, &[(base, "http://a:1"), (exact, "https://b/in")]), to("https://b/in"));
    assert_eq!(place(&none, &[("ADJUTANT_OTLP_ENDPOINT", "http://c"), (base, "http://a")]), to("http://c/v1/traces"));
    let named = place(&flags, &[("OTEL_SERVICE_NAME", "desk")]).unwrap();
    assert_eq!(named.1, "desk");
    for off in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
        assert_eq!(place(&flags, &[off, (base, "http://a")]), None, "{off:?}");
    }
    let home = ("HOME", "/home/me");
    let config = Config::load(&none, &env(&[home, (exact, "https://b:1/in?api_key=secret")])).unwrap();
    let shown = format!("{:?}", config.shown());
    assert!(shown.contains("https://b:1") && !shown.contains("secret"), "{shown}");
    let wrong = problems(&none, &[home, (base, "http://me:secret@a")]);
    assert!(
        wrong.len() == 1 && wrong[0].contains("otlp_endpoint has to be") && !wrong[0].contains("secret"),
        "{wrong:?}"
    );
    let wrong = problems(&none, &[home, (base, "http://a"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    assert!(wrong.len() == 1 && wrong[0].ends_with("`grpc` is not spoken here; use http/protobuf"), "{wrong:?}");
}

#[test]
fn a_slow_server_may_be_waited_for_and_nonsense_is_refused() {
    let text =
        "[providers.slow]\nkind = \"ollama\"\nfirst_byte_timeout = \"20m\"\n[providers.usual]\nkind = \"ollama\"\n";
    let (_folder, flags) = with_file(text);
    let home = env(&[("HOME", "/home/me")]);
    let config = Config::load(&flags, &home).unwrap();
    let seconds = |at: usize| match &config.providers[at].kind {
        Kind::Remote(remote) => {
            let limits = remote.timeouts;
            (limits.first_byte.as_secs(), limits.idle.as_secs(), limits.total.as_secs())
        }
        Kind::Scripted(_) => panic!("it is no script"),
    };
    assert_eq!((seconds(0), seconds(1)), ((1200, 60, 1200), (60, 60, 300)));
    for wrong in ["0s", "25h", "soon"] {
        let (_folder, flags) = with_file(&format!("[providers.one]\nkind = \"ollama\"\nidle_timeout = \"{wrong}\"\n"));
        assert!(Config::load(&flags, &home).is_err(), "{wrong}");
    }
}
