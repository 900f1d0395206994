//! `why --html`: the page of a decision, as a file and in a real browser.

use super::{Run, staled};
use crate::daemon::register;
use crate::harness::{Daemon, Place, file, skipped};
use flate2::read::ZlibDecoder;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names that would do something to a page that took them as they are.
const NAMES: [&str; 4] = [
    "<script>document.title='x'<",
    "src/<img src=x onerror=document.title='y'>.rs",
    "q\"uo'te&amp;",
    "line\nbreak\u{202e}",
];

struct Scene {
    place: Place,
    daemon: Daemon,
    decision: Value,
}

/// A session whose every file has a hostile name; one of them changed.
fn scene() -> Scene {
    let place = Place::new();
    NAMES.iter().for_each(|name| place.write(name, "1"));
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s<b>", &Value::Array(NAMES.iter().map(|name| file(name, "1")).collect()));
    daemon.ask("decide", &json!({ "session": "s<b>" }));
    place.write(NAMES[1], "2");
    daemon.ask("fact.refute", &json!({ "session": "s<b>", "source": NAMES[2] }));
    let decision = daemon.ask("decide", &json!({ "session": "s<b>" }));
    assert_eq!(decision["transition"], "fresh", "{decision}");
    Scene { place, daemon, decision }
}

impl Scene {
    fn name(&self) -> &str {
        self.decision["decision"].as_str().expect("a name")
    }

    fn why(&self, args: &[&str]) -> Run {
        staled(&self.place, &self.daemon.folders.socket, &[&["why", self.name()], args].concat())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.root.join(name)
    }

    /// The page, written.
    fn page(&self) -> PathBuf {
        self.why(&["--html", "page.html"]).ok();
        self.file("page.html")
    }
}

#[test]
fn the_page_is_its_owners_and_takes_the_place_of_another_in_one_step() {
    let scene = scene();
    let others = scene.file("others");
    fs::write(&others, "theirs").expect("a file");
    symlink(&others, scene.file("page.html")).expect("a link");
    let run = scene.why(&["--html", "page.html"]).ok();
    assert!(run.out.is_empty() && run.err.contains("page.html"), "{run:?}");
    let found = fs::symlink_metadata(scene.file("page.html")).expect("it is there");
    assert!(found.is_file(), "a link is replaced and not followed");
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&others).expect("it is there"), "theirs");
    let page = scene.page();
    assert_ne!(
        fs::metadata(&page).expect("it is there").ino(),
        found.ino(),
        "it is replaced, and not written over"
    );
    let read = fs::read_to_string(&page).expect("UTF-8");
    assert_eq!(scene.why(&["--html", "-"]).ok().out, read);
    let told = scene.why(&["--html", "page.html", "--json"]).ok().json();
    assert_eq!(told, json!({ "decision": scene.name(), "file": "page.html" }));
    symlink("/proc/self/fd/1", scene.file("stdout")).expect("a link");
    scene.why(&["--html", "stdout"]).fails(2, "it is no file");
    assert!(
        fs::symlink_metadata(scene.file("stdout")).expect("it is there").is_symlink(),
        "as /dev/stdout is"
    );
    let left: Vec<_> =
        fs::read_dir(&scene.place.root).expect("ours").flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains(".new")), "{left:?}");
}

#[test]
fn what_is_no_file_and_what_is_no_decision_is_refused() {
    let scene = scene();
    scene.why(&["--html", "src"]).fails(2, "cannot write src: it is no file");
    let _socket = UnixListener::bind(scene.file("socket")).expect("a socket");
    scene.why(&["--html", "socket"]).fails(2, "`-` is stdout");
    assert!(!scene.file("socket").is_file());
    scene.why(&["--html", "nowhere/page.html"]).fails(2, "its folder is not there");
    scene.why(&["--html", "-", "--json"]).fails(2, "both want stdout");
    let socket = &scene.daemon.folders.socket;
    staled(&scene.place, socket, &["why", "src", "--html", "p"]).fails(2, "this is a path");
    staled(&scene.place, socket, &["why", "d-00000000", "--html", "p"])
        .fails(2, "knows no decision d-00000000");
    assert!(!scene.file("p").exists());
}

#[test]
fn a_browser_shows_it_and_finds_nothing_to_run_or_to_load() {
    let Some(browser) = browser() else { return };
    let scene = scene();
    let page = scene.page();
    let (dom, said) = browsed(browser, &page, &["--dump-dom"]);
    let dom = String::from_utf8(dom).expect("UTF-8");
    assert!(!said.contains("CONSOLE"), "the browser had something to say: {said}");
    assert!(dom.contains("<title>s&lt;b&gt;: fresh · staled</title>"), "{dom}");
    for needle in ["<script", "<img", "onerror=\"", "<b>"] {
        assert!(!dom.contains(needle), "{needle} in {dom}");
    }
    // A browser writes text with its own escapes: `&`, `<` and `>`.
    for text in [
        "&lt;script&gt;document.title='x'&lt;",
        "&lt;img src=x onerror=document.title='y'&gt;.rs",
        "q\"uo'te&amp;amp;",
        r"line\nbreak\u{202e}",
        "fact refuted",
        scene.name(),
        scene.decision["receipt"]["hash"].as_str().expect("a hash"),
    ] {
        assert!(dom.contains(text), "{text} is not in {dom}");
    }
    // The parts that a reader jumps between, each with its heading.
    for part in [
        "<header>",
        "<main>",
        "<footer>",
        "<h1>",
        "id=\"reason\"",
        "id=\"sources\"",
        "id=\"carried\"",
        "id=\"timeline\"",
        "id=\"receipt\"",
    ] {
        assert_eq!(dom.matches(part).count(), 1, "{part} in {dom}");
    }
    assert_eq!(dom.matches("<section").count(), dom.matches("<h2").count(), "{dom}");
}

#[test]
fn it_is_good_to_look_at_in_light_and_in_dark_and_on_a_telephone() {
    let Some(browser) = browser() else { return };
    let scene = scene();
    let page = scene.page();
    let style = fs::read_to_string(&page).expect("UTF-8");
    let paper: Vec<[u8; 3]> = style
        .match_indices("--page: #")
        .map(|(at, key)| colour(&style[at + key.len()..][..6]))
        .take(2)
        .collect();
    for (scheme, paper) in [("1", paper[0]), ("0", paper[1])] {
        let picture = scene.file("picture.png");
        let screenshot = format!("--screenshot={}", picture.display());
        let scheme = format!("--blink-settings=preferredColorScheme={scheme}");
        browsed(browser, &page, &[&screenshot, &scheme, "--window-size=800,900", "--hide-scrollbars"]);
        let (width, pixels) = pixels(&fs::read(&picture).expect("a picture"));
        assert_eq!((width, pixels.len()), (800, 800 * 900));
        assert_eq!(pixels[0], paper, "the paper of {scheme}");
        let written = pixels.iter().filter(|pixel| **pixel != paper).count();
        assert!((10_000..300_000).contains(&written), "{written} pixels are written on");
        // What is written stands out: the ink is as far from the paper as it may be.
        let light = |pixel: &[u8; 3]| pixel.iter().map(|part| i32::from(*part)).sum::<i32>();
        let far = pixels.iter().map(|pixel| (light(pixel) - light(&paper)).abs()).max();
        assert!(far.is_some_and(|far| far > 500), "{far:?}");
        assert!(pixels.iter().collect::<HashSet<_>>().len() > 50);
    }
}

/// A browser, if there is one; where not, that is said.
fn browser() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names.into_iter().find(|name| {
        let tried = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    });
    if found.is_none() {
        skipped("there is no chromium to look at a page with");
    }
    found
}

/// What a browser without a screen gives out, and what it says.
fn browsed(browser: &str, page: &Path, args: &[&str]) -> (Vec<u8>, String) {
    let profile = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(browser);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
    ]);
    command.args([
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--enable-logging=stderr",
        "--timeout=60000",
    ]);
    command.arg(format!("--user-data-dir={}", profile.path().display())).args(args);
    command.arg(format!("file://{}", page.display())).env("HOME", profile.path());
    let ended = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{said}");
    (ended.stdout, said)
}

fn colour(hex: &str) -> [u8; 3] {
    [0, 2, 4].map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("a colour"))
}

/// The width of a PNG as browsers write it (eight bits, red, green, blue and perhaps opacity), and its pixels.
fn pixels(png: &[u8]) -> (usize, Vec<[u8; 3]>) {
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes")) as usize;
    let (width, depth, kind) = (number(16), png[24], png[25]);
    assert!(depth == 8 && (kind == 2 || kind == 6), "depth {depth}, kind {kind}");
    let step = if kind == 6 { 4 } else { 3 };
    let (mut packed, mut at) = (Vec::new(), 8);
    while at < png.len() {
        let len = number(at);
        if &png[at + 4..at + 8] == b"IDAT" {
            packed.extend_from_slice(&png[at + 8..at + 8 + len]);
        }
        at += len + 12;
    }
    let mut bytes = Vec::new();
    ZlibDecoder::new(&*packed).read_to_end(&mut bytes).expect("a PNG");
    let mut above = vec![0; width * step];
    let mut pixels = Vec::new();
    for line in bytes.chunks_exact_mut(width * step + 1) {
        let (filter, line) = line.split_first_mut().expect("a line");
        unfilter(*filter, line, &above, step);
        pixels.extend(line.chunks_exact(step).map(|pixel| [pixel[0], pixel[1], pixel[2]]));
        above.copy_from_slice(line);
    }
    (width, pixels)
}

/// The filters of PNG (RFC 2083, 6): what a byte was told relative to.
fn unfilter(filter: u8, line: &mut [u8], above: &[u8], step: usize) {
    for at in 0..line.len() {
        let left = if at < step { 0 } else { line[at - step] };
        let corner = if at < step { 0 } else { above[at - step] };
        let told = match filter {
            0 => 0,
            1 => left,
            2 => above[at],
            3 => u8::midpoint(left, above[at]),
            4 => nearest(left, above[at], corner),
            other => panic!("there is no filter {other}"),
        };
        line[at] = line[at].wrapping_add(told);
    }
}

fn nearest(left: u8, above: u8, corner: u8) -> u8 {
    let [one, two, three] = [left, above, corner].map(i32::from);
    let far = |from: i32| (one + two - three - from).abs();
    if far(one) <= far(two) && far(one) <= far(three) {
        left
    } else if far(two) <= far(three) {
        above
    } else {
        corner
    }
}
