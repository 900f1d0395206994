//! Searches: no text is an error, the first result is the one that was meant, and nobody else's memory weighs anything.

use super::{results, save, scene, search};
use crate::harness::{Daemon, Place, ask};
use serde_json::{Value, json};
use staled::config::Config;

/// Observations by title, each with what finds it first.
const TEXTS: [(&str, &str, &[&str]); 12] = [
    ("compiler", "We build the kernel with C++ and not with C", &["C++", "c++ kernel"]),
    ("cleaning", "Never run rm -rf on the build folder", &["rm -rf", "-rf", "rm"]),
    ("greeting", "The bot must say \"hi\" to everyone", &["say \"hi", "\"hi\""]),
    ("cargo features", "Enable memory:safe in the manifest", &["memory:safe", "memory:"]),
    (
        "token type",
        "parseTokenStream lives in src/parser/token_stream.rs",
        &["parseTokenStream", "token_stream", "TokenStream", "stream.rs", "src/parser/token_stream.rs"],
    ),
    ("japanese", "東京の天気は晴れです", &["東京", "天気", "晴"]),
    ("korean", "서울에서 회의를 합니다", &["서울에서", "회의"]),
    ("emoji", "ship it 🚀 on friday 👩‍👩‍👧", &["🚀", "👩‍👩‍👧"]),
    ("accents", "A decisão foi tomada em São Paulo", &["decisão", "decisao", "SÃO PAULO"]),
    ("dash", "an em—dash, and a lone - here", &[" - "]),
    ("environment", "Read the .env file; DATABASE_URL is in it", &[".env", "DATABASE_URL", "database url"]),
    ("odd", "xq zz", &["xq", "zz", "XQ zz"]),
];

#[test]
fn every_query_finds_what_was_meant() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    for (title, content, _) in TEXTS {
        save(client, "u", title, content);
    }
    for (title, _, queries) in TEXTS {
        for query in queries {
            let found = search(client, "u", query);
            let first = found.first().map(|first| first["title"].clone());
            assert_eq!(first, Some(json!(title)), "{query}");
            for result in &found {
                let score = result["score"].as_f64().expect("a number");
                assert!((0.0..=1.0).contains(&score), "{query}: {result}");
            }
        }
        // A title finds its own.
        assert_eq!(search(client, "u", title)[0]["title"], title);
    }
}

#[test]
fn no_query_is_an_error() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    for (title, content, _) in TEXTS {
        save(client, "u", title, content);
    }
    let long = |text: &str, len: usize| text.chars().cycle().take(len).collect::<String>();
    let mut queries: Vec<String> = [
        "-",
        "--",
        "---",
        "\"",
        "\"\"",
        "'",
        "*",
        "a*",
        "*a",
        "(",
        ")",
        "()",
        "a AND",
        "OR",
        "NOT",
        "a NEAR/3 b",
        "title:x",
        ":",
        "^",
        "~",
        "\\",
        "%",
        "_",
        "__",
        "a OR 1=1; DROP TABLE x;--",
        "{\"a\":1}",
        "[x]",
        "$(id)",
        "`id`",
        "\u{0}",
        "a\u{0}b",
        "\u{301}",
        "\u{200d}",
        "\u{feff}",
        "\u{202e}abc",
        "🦊",
        "🦊🦊",
        "é",
        "ß",
        "ﬀ",
        "İ",
        "京",
        "ab",
        "a b",
        "ÿ",
        "<b>",
        "</private>",
        "<private>x</private>",
        "\u{10ffff}",
        "+",
        "++",
        "#",
        "@",
        "/",
        "//",
        "a/",
        ".",
        "..",
    ]
    .map(str::to_owned)
    .to_vec();
    for text in ["a", "word ", "camelCase", "京", "🚀", "\u{301}", "a_b-c/d.e:", "\"", "((", "- ", "İﬀ"]
    {
        queries.push(long(text, 10_000));
    }
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..300 {
        let len = random.usize(1..12);
        queries.push((0..len).map(|_| random.char(..)).collect());
        queries.push((0..len).map(|_| char::from(random.u8(33..127))).collect());
    }
    for query in &queries {
        let params = json!({ "user_id": "u", "query": query, "limit": 100 });
        // What is blank once it is read is said to be; nothing else is refused.
        match client.ask("mem_search", &params) {
            Ok(answer) => drop(results(&serde_json::from_str(&answer).expect("JSON"))),
            Err(error) => {
                let visible =
                    query.chars().any(|symbol| symbol.is_alphanumeric() || symbol.is_ascii_graphic());
                let stray = query.trim() == "</private>";
                assert!(error.to_string().contains("blank") && (!visible || stray), "{query:?}: {error}");
            }
        }
    }
    assert_eq!(ask(client, "status", &json!({}))["problems"], json!([]));
}

#[test]
fn long_queries_are_read_to_a_bound_and_find_what_they_begin_with() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    save(client, "u", "needle", "the kingfisher dives");
    save(client, "u", "hay", "nothing of the kind");
    let query =
        format!("kingfisher {}", (0..2_000).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" "));
    assert!(query.len() > 10_000);
    assert_eq!(search(client, "u", &query)[0]["title"], "needle");
}

#[test]
fn short_queries_rank_a_title_over_a_content() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    save(client, "u", "content only", "about go here");
    save(client, "u", "go", "the language");
    save(client, "u", "neither", "nothing");
    for query in ["go", "GO", " go "] {
        let ranks: Vec<(Value, Value)> = search(client, "u", query)
            .into_iter()
            .map(|found| (found["title"].clone(), found["score_parts"]["rank"].clone()))
            .collect();
        let expected = [(json!("go"), json!(1.0)), (json!("content only"), json!(0.5))];
        assert_eq!(ranks, expected, "{query}");
    }
}

/// Ranks as the socket has them, to the last digit.
fn ranks(daemon: &Daemon, user: &str) -> Vec<(String, Vec<(String, String)>)> {
    let client = &mut daemon.client();
    let rank = |found: &Value| (found["id"].to_string(), found["score_parts"]["rank"].to_string());
    let of = |query: &str, client: &mut _| search(client, user, query).iter().map(rank).collect();
    ["alpha", "beta gamma", "token stream alpha", "al", "delta"]
        .map(|query| (query.to_owned(), of(query, client)))
        .into()
}

#[test]
fn no_memory_of_another_user_moves_a_score() {
    let (_place, daemon) = scene();
    let client = &mut daemon.client();
    let words = ["alpha", "beta", "gamma", "delta", "tokenStream", "epsilon"];
    let mut random = fastrand::Rng::with_seed(3);
    let mut text =
        |len: usize| (0..len).map(|_| words[random.usize(..words.len())]).collect::<Vec<_>>().join(" ");
    for number in 0..20 {
        save(client, "u", &text(3), &format!("{} {number}", text(12)));
    }
    let before = ranks(&daemon, "u");
    assert!(before.iter().all(|(_, found)| found.len() > 5), "{before:?}");
    for number in 0..50 {
        let saved = save(client, "v", &text(3), &format!("{} {number}", text(40)));
        if number % 5 == 0 {
            assert_eq!(ranks(&daemon, "u"), before, "after {} of another user", number + 1);
        }
        if number % 10 == 9 {
            ask(client, "mem_forget", &json!({ "user_id": "v", "id": saved["id"] }));
        }
    }
    assert_eq!(ranks(&daemon, "u"), before);
    // And its own does: the comparison can fail.
    let own = save(client, "u", "alpha", "alpha beta gamma delta token stream");
    assert_ne!(ranks(&daemon, "u"), before);
    // What is gone weighs nothing.
    ask(client, "mem_forget", &json!({ "user_id": "u", "id": own["id"] }));
    assert_eq!(ranks(&daemon, "u"), before);
}

/// Nothing can be kept at hand, so that every search lets go what another one needs.
#[test]
fn a_cache_that_holds_nobody_changes_no_answer() {
    const USERS: usize = 4;
    const SAVES: usize = 120;
    let place = Place::new();
    let mut config = Config::default();
    config.memory.search_cache_bytes = 0;
    let daemon = Daemon::start_with(&place.home, config);
    std::thread::scope(|scope| {
        for user in 0..USERS {
            let mut client = daemon.client();
            scope.spawn(move || {
                for number in 0..SAVES {
                    save(&mut client, &format!("u{user}"), "title", &format!("common word{number}"));
                }
            });
        }
    });
    std::thread::scope(|scope| {
        for user in (0..USERS).cycle().take(2 * USERS) {
            let mut client = daemon.client();
            scope.spawn(move || {
                let user = format!("u{user}");
                for number in 0..15 {
                    let found = search(&mut client, &user, &format!("word{number}"));
                    let first = found.first().map(|first| &first["excerpt"]);
                    assert_eq!(first, Some(&json!(format!("common word{number}"))), "{user}");
                    let around = json!({ "user_id": user, "observation_id": found[0]["id"] });
                    let around = results(&ask(&mut client, "mem_timeline", &around));
                    assert!(around.len() > 5, "{user} {number}: {around:?}");
                    let stats = ask(&mut client, "mem_stats", &json!({ "user_id": user }));
                    let counted = (&stats["observations"], &stats["by_type"]);
                    assert_eq!(counted, (&json!(SAVES), &json!({ "discovery": SAVES })), "{user} {number}");
                }
            });
        }
    });
}
