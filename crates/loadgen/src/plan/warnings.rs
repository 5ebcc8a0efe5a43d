//! Warnings about options without effect on this kind of load.
//!
//! They are not refused, so that one script can run both kinds of loads. Both command lines print
//! these warnings.

use serde::Serialize;
use serde_json::Value;

use crate::plan::{LoadModel, LoadPlan, ReceiveStamps, TlsOptions, Wire};

/// The number of users of a closed loop is also the maximum of an open one.
const OPTION_OF_BOTH_LOOPS: &str = "connections";

/// A warning for each of the `given` options (named like the flags, with underscores) that has no
/// effect on this plan. `open_by` is the flag that selects an open loop.
#[must_use]
pub fn without_effect(plan: &LoadPlan, given: &[impl AsRef<str>], open_by: &str) -> Vec<String> {
    let is_given = |name: &str| given.iter().any(|option| option.as_ref() == name);
    let is_open = matches!(plan.load, LoadModel::Open(_));
    let mut warnings = Vec::new();

    let why = if is_open {
        "in an open loop".to_owned()
    } else {
        format!("in a closed loop; use {open_by} for an open loop")
    };
    let part = keys_of_the_other_loop(plan);
    let ignored = given.iter().map(AsRef::as_ref).filter(|name| {
        *name != OPTION_OF_BOTH_LOOPS && part.iter().any(|key| is_key_of(key, name))
    });
    warnings.extend(ignored.map(|name| format!("{} has no effect {why}", flag(name))));

    if !is_tls(plan) {
        let part = keys_of(&TlsOptions::default());
        let ignored = given.iter().map(AsRef::as_ref);
        let ignored = ignored.filter(|name| part.iter().any(|key| key == name));
        warnings
            .extend(ignored.map(|name| format!("{} has no effect without https://", flag(name))));
    }

    let is_capped = is_given("connections") || is_given("max_connections");
    if is_open && is_given("connections") && is_given("max_connections") {
        let text = "--connections has no effect in an open loop when --max-connections is given";
        warnings.push(text.to_owned());
    }
    if is_open && !is_capped && is_given("on_busy") {
        let text = "--on-busy has no effect without a connection limit; set --max-connections";
        warnings.push(text.to_owned());
    }

    let has_schedule = is_open || is_given("think_time") || is_given("sessions");
    if !has_schedule && is_given("spin") {
        warnings.push("--spin has no effect in a closed loop without --think-time".to_owned());
    }
    if is_given("receive_stamps") && !kernel_can_stamp(plan) {
        warnings.push(
            "--receive-stamps has no effect over TLS, Unix sockets or HTTP/2, or with --wire hyper; \
            the generator's clock is used"
                .to_owned(),
        );
    }
    warnings
}

fn keys_of_the_other_loop(plan: &LoadPlan) -> Vec<String> {
    let other = match plan.load {
        LoadModel::Open(_) => LoadPlan::closed(&plan.url, 1, 1),
        LoadModel::Closed(_) => LoadPlan::open(&plan.url, 1.0, 1),
    };
    match other.load {
        LoadModel::Open(open) => keys_of(&open),
        LoadModel::Closed(closed) => keys_of(&closed),
    }
}

/// The keys of a part of a plan: the options that apply only with this part.
fn keys_of(part: &impl Serialize) -> Vec<String> {
    match serde_json::to_value(part) {
        Ok(Value::Object(keys)) => keys.into_iter().map(|(key, _)| key).collect(),
        _ => Vec::new(),
    }
}

/// Whether this option sets this key; the keys of durations end in their unit.
fn is_key_of(key: &str, option: &str) -> bool {
    key == option || key.strip_suffix("_ns") == Some(option)
}

fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

fn is_tls(plan: &LoadPlan) -> bool {
    let scheme = plan.url.get(..8);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}

/// Whether the generator can use the receive timestamps that the plan requests; its own clock
/// always works.
fn kernel_can_stamp(plan: &LoadPlan) -> bool {
    let is_plain = plan.wire == Wire::Native
        && plan.http_version.is_http1()
        && plan.unix_socket.is_none()
        && !is_tls(plan);
    is_plain || matches!(plan.receive_stamps, None | Some(ReceiveStamps::User))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::plan::HttpVersion;

    fn open() -> LoadPlan {
        LoadPlan::open("http://h/", 100.0, NS_PER_S)
    }

    fn closed() -> LoadPlan {
        LoadPlan::closed("http://h/", 8, NS_PER_S)
    }

    /// The flags that warnings are about.
    fn warned_about(plan: &LoadPlan, given: &str) -> Vec<String> {
        let given: Vec<&str> = given.split_whitespace().collect();
        let warnings = without_effect(plan, &given, "--rate");
        let first = |text: &String| text.split(' ').next().unwrap_or_default().to_owned();
        warnings.iter().map(first).collect()
    }

    #[test]
    fn options_of_the_other_kind_of_load_are_named() {
        let given = "arrivals on_busy max_connections max_pending connections";
        assert_eq!(
            warned_about(&closed(), given),
            [
                "--arrivals",
                "--on-busy",
                "--max-connections",
                "--max-pending"
            ]
        );
        assert_eq!(
            warned_about(&open(), "think_time connections"),
            ["--think-time"]
        );
        assert!(warned_about(&open(), "arrivals max_pending").is_empty());
        assert!(warned_about(&closed(), "think_time").is_empty());
    }

    #[test]
    fn tls_options_need_tls() {
        let given = "insecure ca_file client_cert client_key";
        assert_eq!(
            warned_about(&open(), given),
            ["--insecure", "--ca-file", "--client-cert", "--client-key"]
        );
        let plan = LoadPlan {
            url: "HTTPS://h/".to_owned(),
            ..open()
        };
        assert!(warned_about(&plan, given).is_empty());
    }

    #[test]
    fn on_busy_needs_a_connection_limit() {
        assert_eq!(warned_about(&open(), "on_busy"), ["--on-busy"]);
        assert!(warned_about(&open(), "on_busy max_connections").is_empty());
        assert_eq!(
            warned_about(&open(), "connections max_connections"),
            ["--connections"]
        );
    }

    #[test]
    fn a_closed_loop_without_think_time_does_not_spin() {
        assert_eq!(warned_about(&closed(), "spin"), ["--spin"]);
        assert!(warned_about(&closed(), "spin think_time").is_empty());
        assert!(warned_about(&open(), "spin").is_empty());
    }

    #[test]
    fn kernel_timestamps_exist_on_plain_sockets_only() {
        let stamped = |receive_stamps| LoadPlan {
            receive_stamps,
            ..open()
        };
        assert!(warned_about(&stamped(Some(ReceiveStamps::Kernel)), "receive_stamps").is_empty());
        for plan in [
            LoadPlan {
                url: "https://h/".to_owned(),
                ..stamped(Some(ReceiveStamps::Kernel))
            },
            LoadPlan {
                http_version: HttpVersion::Http2,
                ..stamped(Some(ReceiveStamps::Sampled))
            },
            LoadPlan {
                unix_socket: Some("s".to_owned()),
                ..stamped(Some(ReceiveStamps::Kernel))
            },
            LoadPlan {
                wire: Wire::Hyper,
                ..stamped(Some(ReceiveStamps::Kernel))
            },
        ] {
            assert_eq!(warned_about(&plan, "receive_stamps"), ["--receive-stamps"]);
            let user_stamped = LoadPlan {
                receive_stamps: Some(ReceiveStamps::User),
                ..plan
            };
            assert!(warned_about(&user_stamped, "receive_stamps").is_empty());
        }
    }
}
