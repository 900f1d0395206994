//! Sessions that expire, under a clock that jumps: by the next start, by the timer, and never for a clock that goes back.
//! Needs libfaketime.

use super::{audit, files_with, get, refused, results, save, save_under, search};
use crate::cli::serve::{Serving, state};
use crate::harness::{Place, ask, wait_until};
use crate::lies::jumps::Clock;
use rustix::process::Signal;
use serde_json::{Value, json};
use staled::client::Client;
use staled::protocol::time::from_text;

const DAY: i64 = 24 * 3_600;

fn start(client: &mut Client) -> Value {
    ask(client, "mem_session_start", &json!({ "user_id": "u" }))
}

fn listed(client: &mut Client) -> Vec<Value> {
    results(&ask(client, "mem_list_sessions", &json!({ "user_id": "u" })))
}

fn micros(moment: &Value) -> i64 {
    from_text(moment.as_str().unwrap_or_else(|| panic!("no moment: {moment}"))).expect("a moment").micros
}

fn serve(place: &Place, clock: &Clock) -> (Serving, Client) {
    let daemon = Serving::start_under(place, &[], &clock.variables());
    let client = Client::connect(&daemon.socket).expect("it serves");
    (daemon, client)
}

/// Ended by itself, a timeout behind the last thing that was done in it, with this summary.
fn assert_expired(session: &Value, summary: &str) {
    assert_eq!(
        (&session["summary"], &session["status"]),
        (&json!(summary), &json!("completed")),
        "{session}"
    );
    assert_eq!(session["is_auto_generated"], true, "{session}");
    let lasted = micros(&session["ended_at"]) - micros(&session["last_activity_at"]);
    assert_eq!(lasted, DAY * 1_000_000, "{session}");
}

#[test]
fn a_session_expires_by_the_next_start_and_by_the_timer_and_not_for_a_clock_that_goes_back() {
    let place = Place::new();
    let Some(clock) = Clock::beside(&place) else { return };
    let (mut daemon, mut client) = serve(&place, &clock);
    let client = &mut client;
    let first = start(client);
    save(client, "u", "one", "first words");
    let key = save_under(client, "u", "k", "Zw2first", "second words");
    clock.jump("-3d");
    let back = start(client);
    assert_eq!((&back["is_new"], &back["session_id"]), (&json!(false), &first["session_id"]));
    // A day but for a minute behind the last thing that was done, which a clock set back has not moved.
    clock.jump(&format!("+{}", DAY - 60));
    let again = start(client);
    assert_eq!((&again["is_new"], &again["session_id"]), (&json!(false), &first["session_id"]));
    // That was an activity.
    clock.jump(&format!("+{}", 2 * DAY - 120));
    assert_eq!(start(client)["is_new"], false);
    ask(client, "mem_session_summary", &json!({ "user_id": "u", "summary": "so far" }));
    save_under(client, "u", "k", "Zw2anew", "second words, revised");
    clock.jump(&format!("+{}", 3 * DAY - 60));
    // What only asks ends nothing.
    search(client, "u", "words");
    assert_eq!(listed(client)[0]["status"], "active");
    let (code, _) = refused(client, "mem_session_end", &json!({ "user_id": "u", "summary": "too late" }));
    assert_eq!(code, "not_found", "it has expired, whoever notices");
    let second = start(client);
    assert_eq!((&second["is_new"], second["session_id"] == first["session_id"]), (&json!(true), false));
    let text = "Memorias registradas: [discovery] one, [summary] so far, [decision] Zw2anew";
    assert_expired(&listed(client)[1], text);
    let told = &second["sessions_context"][0];
    assert_eq!((&told["summary"], &told["is_auto_generated"]), (&json!(text), &json!(true)));
    assert_eq!(told["session_id"], first["session_id"]);

    // The second one has nothing in it. A save ends it, and opens the third.
    clock.jump(&format!("+{}", 5 * DAY));
    let third = save(client, "u", "three", "third words");
    assert_eq!(third["session_opened"], "implicit");
    assert_expired(&listed(client)[1], "Nenhuma memoria registrada.");

    // By the timer, with nobody asking: a start looks at once, and then when the next one is due.
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends(), 0);
    clock.jump(&format!("+{}", 6 * DAY - 3));
    let (mut daemon, mut client) = serve(&place, &clock);
    let client = &mut client;
    wait_until("the timer has ended it", || listed(client)[0]["status"] == "completed");
    assert_expired(&listed(client)[0], "Memorias registradas: [discovery] three");
    assert_eq!(listed(client).len(), 3, "{:?}", listed(client));

    // What is forgotten leaves the summary that was made of it too, in every file.
    assert_eq!(get(client, "u", &key["id"])["revision_count"], 2);
    assert!(!files_with(&state(&place), &["Zw2anew"]).is_empty());
    ask(client, "mem_forget", &json!({ "user_id": "u", "id": key["id"] }));
    assert_expired(&listed(client)[2], "Memorias registradas: [discovery] one, [summary] so far");
    wait_until("it is in no file", || files_with(&state(&place), &["Zw2"]).is_empty());
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends(), 0);
    audit(&place);
    let (_daemon, mut client) = serve(&place, &clock);
    assert_expired(&listed(&mut client)[2], "Memorias registradas: [discovery] one, [summary] so far");
}
