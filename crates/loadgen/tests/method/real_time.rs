//! A generator of real-time priority that never sleeps by itself leaves the kernel's share to others before it is made to.

use std::process::Command;

use serde_json::Value;

use crate::child::Generator;
use crate::support::{US, alone, holding, server_with, url_of};

const REAL_TIME: [&str; 3] = ["chrt", "--rr", "1"];
/// Real-time priority, and no right to have it.
const WITHOUT_RIGHT: [&str; 6] =
    ["chrt", "--rr", "1", "setpriv", "--inh-caps=-sys_nice", "--bounding-set=-sys_nice"];

/// What the generator says of itself after a load with a send every 50 µs, before each of which it spins; `None` where
/// those commands are not permitted.
fn spun_throughout(commands: &[&str]) -> Option<Value> {
    let is_permitted = Command::new(commands[0]).args(&commands[1..]).arg("true").status().unwrap().success();
    let _alone = alone();
    let server = server_with(holding(100 * US));
    let url = url_of(&server);
    let arguments = [&url, "--rate", "20000", "--arrivals", "constant", "--duration", "1s", "--spin", "60us"];
    is_permitted.then(|| Generator::start_by(commands, &arguments).report()["client"].take())
}

#[test]
fn real_time_priority_is_given_up_for_its_share_of_the_time() {
    let Some(client) = spun_throughout(&REAL_TIME) else { return };
    assert_eq!((&client["scheduling"], &client["curtailed_spins"]), (&"realtime".into(), &0.into()));
    // Of its whole time, at whose end it waits for the last answers.
    let share = client["real_time_off_share"].as_f64().unwrap();
    assert!((0.05..=0.09).contains(&share), "{share}");
}

#[test]
fn who_may_not_take_real_time_priority_back_keeps_it_and_sleeps() {
    let Some(client) = spun_throughout(&WITHOUT_RIGHT) else { return };
    assert_eq!((&client["scheduling"], &client["real_time_off_share"]), (&"realtime".into(), &Value::Null));
    assert!(client["curtailed_spins"].as_u64() > Some(100), "{client}");
}

#[test]
fn an_ordinary_generator_may_spin_throughout() {
    let client = spun_throughout(&["env"]).unwrap();
    assert_eq!((&client["scheduling"], &client["real_time_off_share"]), (&"ordinary".into(), &Value::Null));
    assert_eq!(client["curtailed_spins"], 0);
}
