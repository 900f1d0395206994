//! What a fork puts in the way of its own end does not hold it up, and nothing of it is lost for that.

use super::*;

/// What a first start of a removal moved up is in the way of a second.
#[test]
fn a_removal_goes_on_where_it_was_killed() {
    let rig = Rig::new();
    let (place, _) = rig.fork("a");
    fs::create_dir(place.home.join(".deep-1")).unwrap();
    deepen(&place.home.join(".deep-1"), "d", 200);
    fs::write(place.home.join(".deep-2"), "").unwrap();
    rig.hands.remove(&place.home).unwrap();
    assert!(!place.home.exists());
}
