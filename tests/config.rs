//! `config/staled.toml` says what the code does.

use staled::config::Config;

const SHIPPED: &str = include_str!("../config/staled.toml");

#[test]
fn the_shipped_file_is_every_key_with_its_default() {
    assert_eq!(Config::parse(SHIPPED).expect("it parses"), Config::default());
    let keys =
        |text: &str| text.lines().filter(|line| line.contains(" = ") && !line.starts_with('#')).count();
    let debug = format!("{:#?}", Config::default());
    let is_field = |line: &&str| line.ends_with(": [") || line.ends_with(',') && line.contains(": ");
    let fields = debug.lines().filter(is_field).count();
    assert_eq!(keys(SHIPPED), fields, "a key is missing from config/staled.toml:\n{debug}");
}

#[test]
fn every_key_of_the_shipped_file_has_a_sentence() {
    let lines: Vec<&str> = SHIPPED.lines().collect();
    for pair in lines.windows(2).filter(|pair| pair[1].contains(" = ") && !pair[1].starts_with('#')) {
        assert!(pair[0].starts_with("# ") && pair[0].ends_with('.'), "{} has no sentence", pair[1]);
    }
}

#[test]
fn what_a_configuration_may_not_say_is_named() {
    for (text, named) in [
        ("[decision]\ndeadline = 5", "deadline"),
        ("[decisions]\n", "decisions"),
        ("[log]\nsync = \"sometimes\"", "sometimes"),
        ("[verify]\nthreads = 0", "verify.threads is 0; it must be from 1 to 64"),
        ("[server]\nrequest_bytes_max = 5", "server.request_bytes_max"),
    ] {
        let error = Config::parse(text).expect_err("it is refused");
        assert!(error.contains(named), "{text}: {error}");
    }
}
