//! `metrics`: OpenMetrics text by its own rules, and counts that are those of the traffic.

use crate::daemon::{decide, decide_at_once, register, write_each};
use crate::harness::{Daemon, Place, file, refusal, wait_until};
use serde_json::json;
use staled::config::{Config, Sync};
use staled::protocol::request::Subscribe;
use std::collections::{BTreeMap, BTreeSet};

/// A family of samples.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    /// By suffix and labels as they stand.
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

/// A whole text, parsed by the rules of OpenMetrics 1.0.0 as far as it uses them. Whatever breaks one is a panic.
fn parse(text: &str) -> BTreeMap<String, Family> {
    let body = text.strip_suffix("# EOF\n").expect("it ends with # EOF and a line feed");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let (mut current, mut said) = (String::new(), BTreeSet::new());
    for line in body.split_terminator('\n') {
        assert!(!line.is_empty() && line != "# EOF", "a line that may not be inside");
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let [keyword, name, value] = [(); 3].map(|()| words.next().expect("three words"));
            assert!(is_name(name), "{line}");
            if name != current {
                assert!(!families.contains_key(name), "{name} is told in two places");
                name.clone_into(&mut current);
                families.insert(current.clone(), Family::default());
                said.clear();
            }
            let family = families.get_mut(name).expect("it is there");
            assert!(family.samples.is_empty() && said.insert(keyword.to_owned()), "late or twice: {line}");
            match keyword {
                "TYPE" => value.clone_into(&mut family.kind),
                "UNIT" => assert!(name.ends_with(&format!("_{value}")), "{line}"),
                "HELP" => assert!(value.ends_with('.'), "{line}"),
                _ => panic!("{line}"),
            }
            continue;
        }
        let (name, labels, value) = sample(line);
        let family = families.get_mut(&current).unwrap_or_else(|| panic!("of no family: {line}"));
        let suffix = name.strip_prefix(current.as_str()).unwrap_or_else(|| panic!("elsewhere: {line}"));
        let allowed: &[&str] = match family.kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            kind => panic!("{kind:?} of {line}"),
        };
        assert!(allowed.contains(&suffix), "{line}");
        assert!(suffix.is_empty() || (value >= 0.0 && value.is_finite()), "{line}");
        let same =
            |(known, with, _): &&(String, BTreeMap<String, String>, f64)| known == suffix && *with == labels;
        assert!(family.samples.iter().find(same).is_none(), "twice: {line}");
        family.samples.push((suffix.to_owned(), labels, value));
    }
    for (name, family) in families.iter().filter(|(_, family)| family.kind == "histogram") {
        check_histogram(name, family);
    }
    for unit in ["seconds", "bytes"] {
        let of_unit = families.keys().filter(|name| name.ends_with(&format!("_{unit}")));
        of_unit.for_each(|name| assert!(text.contains(&format!("# UNIT {name} {unit}\n")), "{name}"));
    }
    families
}

fn is_name(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let (head, value) = line.rsplit_once(' ').expect("a value");
    let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
    let Some((name, rest)) = head.split_once('{') else {
        assert!(is_name(head), "{line}");
        return (head.to_owned(), BTreeMap::new(), value);
    };
    assert!(is_name(name), "{line}");
    let labels = rest.strip_suffix('}').expect("closed braces");
    let labels = labels.split(',').map(|label| {
        let (label, quoted) = label.split_once('=').expect("a label and its value");
        let value = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).expect("quotes");
        assert!(is_name(label) && !value.contains(['"', '\\']), "{line}");
        (label.to_owned(), value.to_owned())
    });
    let count = rest.matches('=').count();
    let labels: BTreeMap<String, String> = labels.collect();
    assert_eq!(labels.len(), count, "a label twice: {line}");
    (name.to_owned(), labels, value)
}

fn check_histogram(name: &str, family: &Family) {
    let of = |suffix: &'static str| family.samples.iter().filter(move |(known, ..)| known == suffix);
    let (mut bound, mut below) = (f64::NEG_INFINITY, 0.0);
    for (_, labels, count) in of("_bucket") {
        let le = &labels["le"];
        assert!(le.contains('.') || le == "+Inf", "{name}: {le} is not canonical");
        let le: f64 = le.parse().expect("a number");
        assert!(le > bound && *count >= below, "{name}: {le} {count}");
        (bound, below) = (le, *count);
    }
    assert!(bound.is_infinite() && bound > 0.0, "{name} ends with +Inf");
    assert_eq!(of("_count").map(|(.., count)| *count).collect::<Vec<_>>(), [below], "{name}");
    assert_eq!(of("_sum").count(), 1, "{name}");
}

/// A scrape.
fn scrape(daemon: &Daemon) -> BTreeMap<String, Family> {
    parse(daemon.ask("metrics", &json!({})).as_str().expect("text"))
}

/// The value of the sample with these labels; 0 where there is none.
fn value(families: &BTreeMap<String, Family>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let family = families.get(name).unwrap_or_else(|| panic!("there is no {name}"));
    let wanted: BTreeMap<String, String> =
        labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect();
    let found = family
        .samples
        .iter()
        .find(|(suffix, with, _)| *with == wanted && ["", "_total", "_count"].contains(&suffix.as_str()));
    found.map_or(0.0, |(.., value)| *value)
}

#[test]
#[expect(clippy::float_cmp, reason = "counts are whole numbers")]
fn counts_are_those_of_the_traffic() {
    let place = Place::new();
    write_each(&place, &["a", "b", "c"], "1");
    let daemon = Daemon::start(&place.home);
    let before = scrape(&daemon);
    assert_eq!(value(&before, "staled_sessions", &[]), 0.0);
    register(&daemon, &place, "s", &json!([file("a", "1"), file("b", "1"), file("c", "1")]));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    place.write("a", "2");
    std::fs::remove_file(place.root.join("b")).expect("it was there");
    let decided_before = value(&scrape(&daemon), "staled_decide_seconds", &[]);
    for _ in 0..2 {
        assert_eq!(decide_at_once(&daemon, "s")["transition"], "fresh");
    }
    assert_eq!(refusal(&mut daemon.client(), "decide", &json!({ "session": "t" })), "no_session_context");
    assert_eq!(refusal(&mut daemon.client(), "nonsense", &json!({})), "-32601");
    let after = scrape(&daemon);
    let of = |name: &str, labels: &[(&str, &str)]| value(&after, name, labels);
    assert!(of("staled_decisions", &[("transition", "resume"), ("reason", "valid")]) >= 1.0);
    assert_eq!(of("staled_decisions", &[("transition", "fresh"), ("reason", "critical_stale")]), 2.0);
    assert_eq!(of("staled_decide_seconds", &[]), decided_before + 2.0, "a refusal is no decision");
    assert!(of("staled_barrier_seconds", &[]) >= 3.0);
    assert_eq!(of("staled_requests", &[("method", "context.register")]), 1.0);
    assert_eq!(of("staled_requests", &[("method", "decide")]), decided_before + 3.0);
    assert_eq!(of("staled_requests", &[("method", "metrics")]), 3.0);
    assert_eq!(of("staled_refusals", &[("code", "no_session_context")]), 1.0);
    assert_eq!(of("staled_refusals", &[("code", "method_not_found")]), 1.0);
    assert_eq!(of("staled_changes", &[("to", "stale"), ("cause", "content")]), 1.0);
    assert_eq!(of("staled_changes", &[("to", "stale"), ("cause", "deleted")]), 1.0);
    assert_eq!(of("staled_rows_doubtful", &[("status", "stale"), ("cause", "content")]), 1.0);
    assert_eq!(of("staled_rows_doubtful", &[("status", "stale"), ("cause", "deleted")]), 1.0);
    assert_eq!((of("staled_sessions", &[]), of("staled_sources", &[])), (1.0, 3.0));
    assert_eq!(of("staled_covered", &[("by", "inode")]), 3.0);
    let health = daemon.ask("status", &json!({}));
    // Whoever writes beside the place is heard too, for its folder is on the way.
    assert!(health["events"].as_f64() >= Some(of("staled_events", &[])) && health["events"] != 0);
    for name in ["watches", "gaps", "missed_events", "scrub_passes", "subscribers"] {
        assert_eq!(Some(of(&format!("staled_{name}"), &[])), health[name].as_f64(), "{name}");
    }
}

#[test]
#[expect(clippy::float_cmp, reason = "counts are whole numbers")]
fn levels_go_down_again_and_sizes_are_those_on_disk() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([file("a", "1")]));
    decide(&daemon, "s");
    let line = daemon.ask("log.read", &json!({ "limit": 1, "tail": true }));
    let state = &daemon.folders.state;
    let held = [daemon.client(), daemon.client()];
    wait_until("three are open", || value(&scrape(&daemon), "staled_connections", &[]) == 3.0);
    let found = scrape(&daemon);
    let of = |name: &str| value(&found, name, &[]);
    assert_eq!(Some(of("staled_log_lines")), line["lines"][0]["seq"].as_f64(), "{line}");
    let log = std::fs::metadata(state.join("decisions.jsonl")).expect("a log").len();
    assert_eq!(of("staled_log_bytes"), log as f64);
    let journal = crate::daemon::files_below(&state.join("journal"));
    let journal: u64 = journal.iter().map(|file| file.metadata().expect("a file").len()).sum();
    assert_eq!(of("staled_journal_bytes"), journal as f64);
    assert!(of("staled_journal_seq") >= 1.0 && of("staled_index_bytes") > 0.0);
    assert!(of("process_open_fds") > 3.0 && of("process_resident_memory_bytes") > 1e6);
    assert!(of("process_start_time_seconds") > 1.7e9);
    assert_eq!(of("staled_store_up"), 1.0);
    wait_until("the log is synced", || value(&scrape(&daemon), "staled_log_syncs", &[]) >= 1.0);
    drop(held);
    wait_until("they are gone", || value(&scrape(&daemon), "staled_connections", &[]) == 1.0);
}

#[test]
#[expect(clippy::float_cmp, reason = "counts are whole numbers")]
fn what_goes_wrong_is_counted_each_under_its_own_name() {
    let place = Place::new();
    place.write("d/f", "1");
    let mut config = Config::default();
    config.decision.deadline_ms = config.decision.deadline_ms_max;
    (config.verify.scrub_pass_s, config.server.connections_max) = (1, 8);
    (config.log.sync, config.log.file_bytes_max) = (Sync::Always, 4_096);
    let daemon = Daemon::start_with(&place.home, config);
    let tree = json!({ "id": "tree", "source": { "kind": "tree", "path": "." } });
    register(&daemon, &place, "s", &json!([tree]));

    let status = || daemon.ask("status", &json!({}));
    std::fs::hard_link(place.root.join("d/f"), place.home.join("elsewhere")).expect("a link");
    std::fs::write(place.home.join("elsewhere"), "2").expect("a file");
    wait_until("the scrub finds it", || status()["missed_events"] == 1);
    wait_until("it goes round", || status()["scrub_passes"].as_u64() > Some(3));
    for _ in 0..20 {
        decide_at_once(&daemon, "s");
    }

    let wanted = || Subscribe { topics: vec!["gap".to_owned()], session: None };
    let told: Vec<_> = (0..3).map(|_| daemon.client().subscribe(&wanted()).expect("it is told")).collect();
    let before = status()["scrub_passes"].as_f64();
    let found = scrape(&daemon);
    let of = |name: &str| value(&found, name, &[]);
    assert_eq!((of("staled_gaps"), of("staled_missed_events"), of("staled_subscribers")), (1.0, 1.0, 3.0));
    let passes = Some(of("staled_scrub_passes"));
    assert!(before <= passes && passes <= status()["scrub_passes"].as_f64(), "{passes:?}");
    let coverage = &daemon.ask("status", &json!({ "session": "s" }))["coverage"];
    for by in ["inode", "directory"] {
        assert_eq!(Some(value(&found, "staled_covered", &[("by", by)])), coverage[by].as_f64(), "{coverage}");
    }
    assert!(coverage["directory"].as_u64() > Some(0), "{coverage}");
    let files = std::fs::read_dir(&daemon.folders.state).expect("a folder");
    let files = files.filter(|file| {
        file.as_ref().is_ok_and(|file| file.file_name().to_string_lossy().starts_with("decisions"))
    });
    assert!(files.count() > 2, "it was rotated");
    assert!(of("staled_log_syncs") >= 20.0, "of every file: {}", of("staled_log_syncs"));
    assert_eq!(of("staled_connections_refused"), 0.0);

    let held: Vec<_> = (0..5).map(|_| daemon.client()).collect();
    wait_until("all places are taken", || {
        let refused = daemon.client().ask("hello", &json!({}));
        refused.is_err_and(|error| error.to_string().contains("server.connections_max"))
    });
    drop((told, held));
    wait_until("there is room", || daemon.client().ask("hello", &json!({})).is_ok());
    let found = scrape(&daemon);
    assert!(value(&found, "staled_connections_refused", &[]) >= 1.0);
    wait_until("nobody is told any more", || value(&scrape(&daemon), "staled_subscribers", &[]) == 0.0);
}

#[test]
fn the_parser_of_this_test_refuses_what_is_not_openmetrics() {
    let good = "# TYPE a counter\n# HELP a A.\na_total{x=\"y\"} 1\n# EOF\n";
    assert_eq!(parse(good)["a"].samples.len(), 1);
    for bad in [
        good.replace("# EOF\n", "# EOF"),
        good.replace("a_total", "a"),
        good.replace("a_total{x=\"y\"} 1", "a_total 1\na_total 2"),
        good.replace("# EOF", "\n# EOF"),
        good.replace("} 1", "} one"),
        good.replace("# EOF", "# TYPE b gauge\nb 1\n# TYPE a counter\n# EOF"),
        "# TYPE h_seconds histogram\nh_seconds_bucket{le=\"1.0\"} 2\nh_seconds_bucket{le=\"+Inf\"} 1\n# EOF\n".to_owned(),
        "# TYPE b_bytes gauge\nb_bytes 1\n# EOF\n".to_owned(),
    ] {
        let parsed = std::panic::catch_unwind(|| parse(&bad));
        assert!(parsed.is_err(), "{bad}");
    }
}
