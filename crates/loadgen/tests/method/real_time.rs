//! A generator of real-time priority that never sleeps by itself gives it up at times, before it is
//! stopped by force.

use std::process::Command;

use serde_json::Value;

use crate::child::Generator;
use crate::support::{US, alone, holding, server_with, url_of};

const REAL_TIME: [&str; 3] = ["chrt", "--rr", "1"];
/// Real-time priority, and no right to have it.
const WITHOUT_RIGHT: [&str; 6] = [
    "chrt",
    "--rr",
    "1",
    "setpriv",
    "--inh-caps=-sys_nice",
    "--bounding-set=-sys_nice",
];
/// Real-time priority and the right to have it, but none to be an urgent thread. To raise a limit
/// takes `CAP_SYS_RESOURCE`.
const WITH_A_LIMIT: [&str; 9] = [
    "chrt",
    "--rr",
    "1",
    "prlimit",
    "--rtprio=1:1",
    "--nice=20:20",
    "setpriv",
    "--inh-caps=-sys_nice",
    "--bounding-set=-sys_nice",
];

/// What the generator says of itself after a load with a send every 50 µs, before each of which it
/// spins; `None` where those commands are not permitted.
fn spun_throughout(commands: &[&str]) -> Option<Value> {
    let status = Command::new(commands[0])
        .args(&commands[1..])
        .arg("true")
        .status();
    let is_permitted = status.is_ok_and(|status| status.success());
    let _alone = alone();
    let server = server_with(holding(100 * US));
    let url = url_of(&server);
    let arguments = [
        &url,
        "--rate",
        "20000",
        "--arrivals",
        "constant",
        "--duration",
        "1s",
        "--spin",
        "60us",
    ];
    is_permitted.then(|| Generator::start_by(commands, &arguments).report()["client"].take())
}

fn assert_given_up_for_its_share(commands: &[&str]) {
    let Some(client) = spun_throughout(commands) else {
        return;
    };
    assert_eq!(
        (&client["scheduling"], &client["curtailed_spins"]),
        (&"realtime".into(), &0.into())
    );
    // Of its whole time, at whose end it waits for the last answers. Time in which others have its
    // core is rest, too.
    let share = client["real_time_off_share"].as_f64().unwrap();
    assert!(share > 0.0 && share <= 0.08, "{share}");
}

#[test]
fn real_time_priority_is_given_up_for_its_share_of_the_time() {
    assert_given_up_for_its_share(&REAL_TIME);
}

#[test]
fn real_time_priority_by_a_limit_is_given_up_for_its_share_of_the_time() {
    assert_given_up_for_its_share(&WITH_A_LIMIT);
}

#[test]
fn who_may_not_take_real_time_priority_back_keeps_it_and_sleeps() {
    let Some(client) = spun_throughout(&WITHOUT_RIGHT) else {
        return;
    };
    assert_eq!(
        (&client["scheduling"], &client["real_time_off_share"]),
        (&"realtime".into(), &Value::Null)
    );
    assert!(client["curtailed_spins"].as_u64() > Some(100), "{client}");
}

#[test]
fn an_ordinary_generator_may_spin_throughout() {
    let client = spun_throughout(&["env"]).unwrap();
    assert_eq!(
        (&client["scheduling"], &client["real_time_off_share"]),
        (&"ordinary".into(), &Value::Null)
    );
    assert_eq!(client["curtailed_spins"], 0);
}
