//! What terms texts have, and what short queries find.

use super::fold::folded;
use super::{NAME_BYTES_MAX, Needle, QUERY_TERMS_MAX, TERM_BYTES_MAX, each, is_short, of_query};

fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    each(text, &mut |term| terms.push(term.to_owned()));
    terms
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(terms(text), expected, "{text}");
}

#[test]
fn names_are_found_whole_and_by_their_parts() {
    check("tokenStore", &["tokenstore", "token", "store"]);
    check("TokenStore", &["tokenstore", "token", "store"]);
    check("HTTPServer", &["httpserver", "http", "server"]);
    check("parseHTTP", &["parsehttp", "parse", "http"]);
    check("token_store", &["token_store", "token", "store"]);
    check("__TOKEN__STORE", &["token__store", "token", "store"]);
    check("token-store", &["token-store", "token", "store"]);
    check("utf8", &["utf8", "utf", "8"]);
    check("sha256Sum", &["sha256sum", "sha", "256", "sum"]);
    check("memory:safe", &["memory:safe", "memory", "safe"]);
    check("Token::is_valid", &["token::is_valid", "token", "is_valid", "is", "valid"]);
    check("src/a/token.rs", &["src/a/token.rs", "token.rs", "src", "a", "token", "rs"]);
    check("ÄpfelBaum", &["apfelbaum", "apfel", "baum"]);
}

#[test]
fn symbols_belong_to_a_name_and_the_sentence_does_not() {
    check("C++", &["c++", "c"]);
    check("(C++, C#.)", &["c++", "c", "c#", "c"]);
    check("rm -rf", &["rm", "-rf", "rf"]);
    check("--no-verify", &["--no-verify", "no", "verify"]);
    check(".env:", &[".env", "env"]);
    check("src/ and $HOME.", &["src", "and", "$home", "home"]);
    check("say \"hi", &["say", "hi"]);
    check("Vec<u8>", &["vec", "u8", "u", "8"]);
    check("50%", &["50%", "50"]);
    check("don't", &["don", "t"]);
}

#[test]
fn symbols_alone_are_no_terms() {
    for text in
        ["", " ", "---", "\"\"", "-", "_", "-_-", "...", "(){}[]", "¿?", "→→→", "\u{301}\u{301}\u{301}", "::"]
    {
        check(text, &[]);
    }
}

#[test]
fn scripts_without_spaces_go_by_characters_and_pairs() {
    check("東京都", &["東", "東京", "京", "京都", "都"]);
    check("iPhone用ケース。", &["iphone", "i", "phone", "用", "用ケ", "ケ", "ケー", "ー", "ース", "ス"]);
    check("가나", &["가", "가나", "나"]);
    check("ภาษา", &["ภ", "ภา", "า", "าษ", "ษ", "ษา", "า"]);
    check("हिन्दी", &["हिन्दी"]);
}

#[test]
fn emoji_are_terms_of_their_own() {
    check("ship it🚀", &["ship", "it", "🚀"]);
    check("👍🏽", &["👍"]);
    check("👩‍💻", &["👩", "👩💻", "💻"]);
    check("❤️", &["❤"]);
    check("🇪🇸", &["🇪", "🇪🇸", "🇸"]);
}

#[test]
fn what_is_spelled_differently_is_folded_to_one() {
    for (one, other) in [
        ("canción", "CANCION"),
        ("cancio\u{301}n", "canción"),
        ("Straße", "STRASSE"),
        ("ΣΊΣΥΦΟΣ", "σισυφος"),
        ("ＦＵＬＬ１", "full1"),
        ("ﬁne", "fine"),
        ("İstanbul ıdır", "istanbul idir"),
        ("Łódź smørrebrød Æther", "lodz smorrebrod aether"),
        ("שָׁלוֹם", "שלום"),
        ("ｶﾞ", "ガ"),
        ("한글", "한글"),
        ("soft\u{ad}hyphen", "softhyphen"),
    ] {
        assert_eq!(folded(one), folded(other), "{one}");
        assert_eq!(terms(one).first(), terms(other).first(), "{one}");
    }
    assert_ne!(folded("ガ"), folded("カ"), "a voiced kana is another letter");
    assert_ne!(folded("की"), folded("का"), "vowel signs make the word");
}

#[test]
fn digests_have_no_parts_and_neither_has_data() {
    check("blake3:853e2600", &["blake3:853e2600", "blake3", "blake", "3", "853e2600"]);
    let name = "aB".repeat(NAME_BYTES_MAX / 2);
    assert_eq!(terms(&name).len(), 1 + NAME_BYTES_MAX / 2 + 1);
    let data = format!("{name}C");
    assert_eq!(terms(&data), [data.to_lowercase()]);
}

#[test]
fn a_long_term_is_cut_on_a_character_border_and_found_by_its_beginning() {
    let long = format!("x{}", "é".repeat(TERM_BYTES_MAX));
    let cyrillic = format!("x{}", "ж".repeat(TERM_BYTES_MAX));
    assert_eq!(terms(&long), [format!("x{}", "e".repeat(TERM_BYTES_MAX - 1))]);
    assert_eq!(terms(&cyrillic), [format!("x{}", "ж".repeat((TERM_BYTES_MAX - 1) / 2))]);
}

#[test]
fn a_query_has_its_first_distinct_terms_and_no_more() {
    assert_eq!(of_query("b a b c a"), ["b", "a", "c"]);
    let many: String = (0..500).map(|number| format!("{number} {number} ")).collect();
    let first: Vec<String> = (0..QUERY_TERMS_MAX).map(|number| number.to_string()).collect();
    assert_eq!(of_query(&many), first);
}

#[test]
fn short_is_what_has_two_characters_or_no_term() {
    for query in ["", "  ", "a", "C#", "日本", "👍", "-", "---", "\"\"", "  ab  ", "→→→", "é\u{301}"]
    {
        assert!(is_short(query), "{query:?}");
    }
    for query in ["C++", "abc", "日本語", "a b", "-rf", "👩‍💻"] {
        assert!(!is_short(query), "{query:?}");
    }
}

#[test]
fn a_short_query_is_found_as_it_stands() {
    for (query, title, content, rank) in [
        ("c#", "Use C#", "", Some(1.0)),
        ("c#", "", "we use C# here", Some(0.5)),
        ("C#", "C#", "C#", Some(1.0)),
        ("go", "", "Golang", Some(0.5)),
        ("é", "", "Cafe", Some(0.5)),
        ("-", "", "rm -rf", Some(0.5)),
        ("---", "a --- b", "", Some(1.0)),
        ("--- ", "a---", "", Some(1.0)),
        ("日本", "", "日本語", Some(0.5)),
        ("👍🏽", "👍", "", Some(1.0)),
        ("\u{301}", "e\u{301}", "", Some(1.0)),
        ("\u{200d}", "plain", "👩‍💻", Some(0.5)),
        ("\u{301}", "é", "plain", None),
        ("zz", "a", "b", None),
        ("", "a", "b", None),
        ("  ", "a", "b", None),
    ] {
        assert_eq!(Needle::new(query).rank(title, content), rank, "{query:?} in {title:?}, {content:?}");
    }
}

/// Whatever the text: no panic, terms of bounded length, and each is found again by itself.
#[test]
fn any_text_has_terms_without_a_panic() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..3_000 {
        let text = anything(&mut random);
        for term in terms(&text) {
            assert!(
                !term.is_empty() && term.len() <= 3 * TERM_BYTES_MAX,
                "seed {seed}: {term:?} in {text:?}"
            );
            assert!(terms(&term).contains(&term) || !term.is_ascii(), "seed {seed}: {term:?} of {text:?}");
        }
        assert!(of_query(&text).len() <= QUERY_TERMS_MAX);
        let found = Needle::new(&text).rank(&text, "");
        assert_eq!(found, (!text.trim().is_empty()).then_some(1.0), "seed {seed}: {text:?}");
        assert!(
            !is_short(&text) || text.trim().chars().count() < 3 || terms(&text).is_empty(),
            "seed {seed}: {text:?}"
        );
    }
}

fn anything(random: &mut fastrand::Rng) -> String {
    let planes = [
        '\u{20}'..='\u{7e}',
        '\0'..='\u{24f}',
        '\u{300}'..='\u{fff}',
        '\u{1f000}'..='\u{1faff}',
        '\0'..=char::MAX,
    ];
    (0..random.usize(0..60))
        .map(|_| {
            let plane = &planes[random.usize(0..planes.len())];
            random.char(plane.clone())
        })
        .collect()
}
