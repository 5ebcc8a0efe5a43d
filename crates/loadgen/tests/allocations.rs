//! The generator allocates no memory per request, even with placeholders: a load that is ten times
//! as long makes hardly more allocations.
//!
//! This is a separate program because it counts all allocations of its process.

use loadgen::plan::ReceiveStamps;
use loadgen::{LoadPlan, Outcome, StopToken, run};
use refsrv::{Config, ReferenceServer};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const SECOND: u64 = 1_000_000_000;
const CONNECTIONS: usize = 16;
/// Maximum number of additional allocations of the longer load, for its intervals, its batches and
/// vectors that grow with them. One allocation per 100 requests would add hundreds.
const MAX_EXTRA_ALLOCATIONS: u64 = 100;

/// Runs a closed loop; returns its number of allocations and of requests. The fast server makes no
/// allocation per request.
fn allocations(
    server: &ReferenceServer,
    path: &str,
    stamps: ReceiveStamps,
    measure_ns: u64,
) -> (u64, u64) {
    let plan = LoadPlan::closed(
        &format!("http://{}{path}", server.addr()),
        CONNECTIONS,
        measure_ns,
    );
    let plan = LoadPlan {
        receive_stamps: Some(stamps),
        ..plan
    };
    let before = dhat::HeapStats::get().total_blocks;
    let report = run(&plan, &StopToken::new()).expect("a report");

    assert_eq!(report.outcome(Outcome::Ok), report.scheduled());

    (
        dhat::HeapStats::get().total_blocks - before,
        report.scheduled(),
    )
}

#[test]
fn a_request_makes_no_allocation() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let server = ReferenceServer::start(Config {
        fast: true,
        ..Config::default()
    })
    .expect("a server");
    let placeholders = "/{{seq:1}}?n={{random:1:1000}}&id={{uuid}}";

    for (path, stamps) in [
        ("/", ReceiveStamps::User),
        ("/", ReceiveStamps::Kernel),
        (placeholders, ReceiveStamps::User),
    ] {
        let (short_load, requests) = allocations(&server, path, stamps, SECOND / 10);
        let (long_load, more_requests) = allocations(&server, path, stamps, SECOND);
        let per_request =
            long_load.saturating_sub(short_load) as f64 / (more_requests - requests) as f64;
        assert!(
            more_requests > requests + 1_000,
            "{requests} and {more_requests} requests: too few"
        );
        assert!(
            long_load <= short_load + MAX_EXTRA_ALLOCATIONS,
            "{per_request} per request ({short_load}, {long_load} in all): {path}, {stamps:?}"
        );
    }
}
