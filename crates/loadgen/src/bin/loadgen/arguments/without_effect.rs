//! Flags that were given and change nothing, because the load is of another kind.

use clap::ArgMatches;
use clap::parser::ValueSource;

const OF_OPEN_LOOPS: &[&str] = &["arrivals", "on_busy", "max_connections", "max_pending"];
const OF_CLOSED_LOOPS: &[&str] = &["think_time"];

const OF_TLS: &[&str] = &["insecure", "ca_file"];

const WITH_OWN_INSTANTS: &str = "over TLS, Unix sockets, HTTP/2 and hyper, where answers are timed \
    by the generator's own clock";

const ONLY_BEYOND_A_CAP: &str =
    "makes a difference only where the cap on connections is reached; --max-connections sets it";

/// A remark for each of them. They are not refused, so that one script can drive loads of both
/// kinds.
pub fn without_effect(given: &ArgMatches, is_open: bool, is_tls: bool) -> Vec<String> {
    let (flags, why) = if is_open {
        (
            OF_CLOSED_LOOPS,
            "in an open loop, where a schedule says when requests are sent",
        )
    } else {
        (OF_OPEN_LOOPS, "in a closed loop; --rate makes an open one")
    };
    let mut remarks = flags
        .iter()
        .filter(|flag| is_said(given, flag))
        .map(|flag| format!("--{} has no effect {why}", flag.replace('_', "-")))
        .collect::<Vec<_>>();
    let of_tls = OF_TLS.iter().filter(|flag| !is_tls && is_said(given, flag));
    remarks.extend(of_tls.map(|flag| {
        format!(
            "--{} has no effect without https://",
            flag.replace('_', "-")
        )
    }));
    if is_open && is_said(given, "connections") && is_said(given, "max_connections") {
        remarks.push(
            "--connections has no effect beside --max-connections in an open loop".to_owned(),
        );
    }
    let is_capped = is_said(given, "connections") || is_said(given, "max_connections");
    if is_open && !is_capped && is_said(given, "on_busy") {
        remarks.push(format!("--on-busy {ONLY_BEYOND_A_CAP}"));
    }
    let has_instants = is_open || is_said(given, "think_time") || is_said(given, "sessions");
    if !has_instants && is_said(given, "spin") {
        remarks.push("--spin has no effect in a closed loop without --think-time".to_owned());
    }
    if asks_kernel(given) && (is_tls || has_own_instants(given)) {
        remarks.push(format!(
            "--receive-stamps has no effect {WITH_OWN_INSTANTS}"
        ));
    }
    remarks
}

fn asks_kernel(given: &ArgMatches) -> bool {
    is_said(given, "receive_stamps")
        && given
            .get_raw("receive_stamps")
            .is_some_and(|mut all| all.any(|one| one != "user"))
}

/// Whether no answer has a stamp of the kernel's, TLS apart.
fn has_own_instants(given: &ArgMatches) -> bool {
    let is_hyper = given
        .get_raw("wire")
        .is_some_and(|mut all| all.any(|one| one == "hyper"));
    is_hyper || given.get_flag("http2") || is_said(given, "unix_socket")
}

fn is_said(given: &ArgMatches, flag: &str) -> bool {
    given.value_source(flag) == Some(ValueSource::CommandLine)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::Arguments;

    /// The flags that a remark is about.
    fn remarked(words: &str, is_open: bool) -> Vec<String> {
        let given = Arguments::command().get_matches_from(words.split_ascii_whitespace());
        let remarks = without_effect(&given, is_open, words.contains("https://"));
        remarks
            .iter()
            .map(|remark| remark.split(' ').next().unwrap_or_default().to_owned())
            .collect()
    }

    #[test]
    fn each_kind_of_load_tells_the_flags_of_the_other() {
        let words = "loadgen http://h/ --arrivals poisson --on-busy grow --max-connections 9 \
            --max-pending 5 --think-time 0s";
        assert_eq!(
            remarked(words, false),
            [
                "--arrivals",
                "--on-busy",
                "--max-connections",
                "--max-pending"
            ]
        );
        assert_eq!(remarked(words, true), ["--think-time"]);
    }

    #[test]
    fn what_is_for_tls_is_told_where_there_is_none() {
        assert_eq!(
            remarked("loadgen http://h/ --insecure --ca-file f", false),
            ["--insecure", "--ca-file"]
        );
        assert!(remarked("loadgen https://h/ --insecure --ca-file f", false).is_empty());
    }

    #[test]
    fn a_spin_is_told_where_no_send_has_an_instant() {
        assert_eq!(
            remarked("loadgen http://h/ -c 8 --spin 60us", false),
            ["--spin"]
        );
        assert!(remarked("loadgen http://h/ -c 8 --spin 60us --think-time 1ms", false).is_empty());
        assert!(remarked("loadgen http://h/ -c 8 -R 100 --spin 60us", true).is_empty());
    }

    #[test]
    fn stamps_of_the_kernel_are_told_where_it_has_none() {
        for without in ["--wire hyper", "--http2", "--unix-socket s"] {
            let words = format!("loadgen http://h/ -c 8 {without} --receive-stamps");
            assert_eq!(
                remarked(&format!("{words} kernel"), false),
                ["--receive-stamps"],
                "{without}"
            );
            assert!(
                remarked(&format!("{words} user"), false).is_empty(),
                "{without}"
            );
        }
        assert_eq!(
            remarked("loadgen https://h/ -c 8 --receive-stamps sampled", false),
            ["--receive-stamps"]
        );
        assert!(remarked("loadgen http://h/ -c 8 --receive-stamps kernel", false).is_empty());
    }

    #[test]
    fn defaults_are_not_told() {
        assert!(remarked("loadgen http://h/ -c 8", false).is_empty());
        assert!(remarked("loadgen http://h/ -R 100 -c 8", true).is_empty());
    }

    #[test]
    fn what_is_done_at_a_cap_is_told_where_no_cap_is_given() {
        let remarked_with = |more: &str| {
            remarked(
                &format!("loadgen http://h/ -R 100 --on-busy queue {more}"),
                true,
            )
        };
        assert_eq!(remarked_with(""), ["--on-busy"]);
        assert!(
            remarked_with("-c 8").is_empty() && remarked_with("--max-connections 8").is_empty()
        );
        assert!(remarked("loadgen http://h/ -R 100", true).is_empty());
    }

    #[test]
    fn of_two_caps_the_one_that_does_not_hold_is_told() {
        assert_eq!(
            remarked("loadgen http://h/ -R 100 -c 8 --max-connections 9", true),
            ["--connections"]
        );
    }
}
