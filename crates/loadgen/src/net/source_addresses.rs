//! Local addresses of the connections, used in rotation: each address has its own ports, so more
//! addresses provide more ports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

use crate::base::error::LoadError;
use crate::plan::portion::Portion;

/// Addresses and the next one to use; clones share the rotation.
#[derive(Clone, Debug)]
pub(crate) struct SourceAddresses {
    ranges: Vec<Range>,
    count: u64,
    turn: Arc<AtomicU64>,
    step: u64,
}

/// Consecutive addresses of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: IpAddr,
    count: u64,
}

impl SourceAddresses {
    /// Parses `127.0.0.2`, `127.0.0.2-127.0.0.50` and `127.0.0.0/24`; `None` for an empty list.
    pub fn parse(texts: &[String]) -> Result<Option<Self>, LoadError> {
        let ranges: Vec<Range> = texts
            .iter()
            .map(|text| parse_range(text))
            .collect::<Result<_, _>>()?;
        Ok((!ranges.is_empty()).then(|| Self::of(ranges)))
    }

    /// The first `count` addresses of the loopback network.
    pub fn loopback(count: u64) -> Self {
        Self::of(vec![Range {
            first: IpAddr::V4(Ipv4Addr::LOCALHOST),
            count,
        }])
    }

    fn of(ranges: Vec<Range>) -> Self {
        let count = ranges.iter().map(|range| range.count).sum();
        Self {
            ranges,
            count,
            turn: Arc::default(),
            step: 1,
        }
    }

    /// Leaves the other turns to the other processes, which would all start at the first address.
    pub fn share(&mut self, process: Portion) {
        self.turn = Arc::new(AtomicU64::new(process.index as u64));
        self.step = process.count as u64;
    }

    /// Number of addresses.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The next address in the rotation.
    pub fn next(&self) -> IpAddr {
        let mut place = self.turn.fetch_add(self.step, Ordering::Relaxed) % self.count;
        for range in &self.ranges {
            if place < range.count {
                return offset(range.first, place);
            }
            place -= range.count;
        }
        unreachable!("the count is that of all ranges")
    }

    /// The addresses in text form.
    pub fn texts(&self) -> Vec<String> {
        let text = |range: &Range| match range.count {
            1 => range.first.to_string(),
            count => format!("{}-{}", range.first, offset(range.first, count - 1)),
        };
        self.ranges.iter().map(text).collect()
    }

    /// Rejects duplicates, which would add no ports.
    fn require_distinct(&self) -> Result<(), LoadError> {
        let mut ranges = self.ranges.clone();
        ranges.sort_by_key(|range| (range.first.is_ipv6(), number(range.first)));

        for (one, next) in ranges.iter().zip(ranges.iter().skip(1)) {
            let is_same_family = one.first.is_ipv4() == next.first.is_ipv4();
            if is_same_family && number(next.first) - number(one.first) < u128::from(one.count) {
                return Err(bad(format!("{} is listed twice", next.first)));
            }
        }
        Ok(())
    }

    /// Rejects addresses that cannot be the source of a connection to `server`.
    pub fn check(&self, server: &SocketAddr) -> Result<(), LoadError> {
        self.require_distinct()?;
        for range in &self.ranges {
            if range.first.is_ipv4() != server.is_ipv4() {
                return Err(bad(format!(
                    "{} cannot reach {}: one is IPv4, the other IPv6",
                    range.first,
                    server.ip()
                )));
            }
            for address in [range.first, offset(range.first, range.count - 1)] {
                require_host(address)?;
                bindable(address).map_err(|error| {
                    bad(format!(
                        "{address}: {error}; use addresses of this machine (list them \
                        with: ip address)"
                    ))
                })?;
            }
        }

        Ok(())
    }
}

/// Rejects addresses that a socket can be bound to but that cannot be the source of a packet.
fn require_host(address: IpAddr) -> Result<(), LoadError> {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    if address.is_unspecified() || address.is_multicast() || is_broadcast {
        let hint = "use addresses of this machine (list them with: ip address)";
        return Err(bad(format!("{address} is not a host address; {hint}")));
    }
    Ok(())
}

fn bad(message: String) -> LoadError {
    LoadError::Plan(format!("source address {message}"))
}

fn bindable(address: IpAddr) -> std::io::Result<()> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    Ok(bind(&socket, &SocketAddr::new(address, 0))?)
}

fn parse_range(text: &str) -> Result<Range, LoadError> {
    let unreadable = || {
        bad(format!(
            "{text:?} is not an address, range or network; write 127.0.0.2, 127.0.0.2-127.0.0.50 or \
            127.0.0.0/24"
        ))
    };
    let address = |part: &str| part.trim().parse::<IpAddr>().map_err(|_| unreadable());
    if let Some((network, length)) = text.split_once('/') {
        let length = length.trim().parse().map_err(|_| unreadable())?;
        return network_range(address(network)?, length).ok_or_else(unreadable);
    }

    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (address(first)?, address(last)?),
        None => (address(text)?, address(text)?),
    };
    let is_one_family = first.is_ipv4() == last.is_ipv4();
    let beyond = number(last)
        .checked_sub(number(first))
        .filter(|_| is_one_family)
        .ok_or_else(unreadable)?;
    let count = u64::try_from(beyond)
        .ok()
        .and_then(|beyond| beyond.checked_add(1))
        .ok_or_else(unreadable)?;

    Ok(Range { first, count })
}

/// The hosts of a network, without the network address and the broadcast address.
fn network_range(address: IpAddr, length: u32) -> Option<Range> {
    let bits: u32 = if address.is_ipv4() { 32 } else { 128 };
    let host_bits = bits.checked_sub(length)?;
    if host_bits > 32 {
        return None;
    }

    let size = 1_u64 << host_bits;
    let network = number(address) & !u128::from(size - 1);
    let (first, count) = if host_bits > 1 {
        (network + 1, size - 2)
    } else {
        (network, size)
    };

    Some(Range {
        first: from_number(first, address.is_ipv4()),
        count,
    })
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn from_number(number: u128, is_ipv4: bool) -> IpAddr {
    if is_ipv4 {
        IpAddr::V4(Ipv4Addr::from_bits(number as u32))
    } else {
        IpAddr::V6(Ipv6Addr::from_bits(number))
    }
}

fn offset(first: IpAddr, places: u64) -> IpAddr {
    from_number(number(first) + u128::from(places), first.is_ipv4())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(texts: &[&str]) -> Result<SourceAddresses, LoadError> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        SourceAddresses::parse(&texts).map(|sources| sources.expect("some"))
    }

    fn turns(sources: &SourceAddresses, count: usize) -> Vec<String> {
        (0..count).map(|_| sources.next().to_string()).collect()
    }

    #[test]
    fn addresses_take_turns() {
        let sources =
            sources(&["127.0.0.2-127.0.0.3", "127.0.1.0/30", "127.9.9.9"]).expect("addresses");
        assert_eq!(sources.count(), 5);

        let clone = sources.clone();
        assert_eq!(turns(&sources, 3), ["127.0.0.2", "127.0.0.3", "127.0.1.1"]);
        assert_eq!(
            turns(&clone, 3),
            ["127.0.1.2", "127.9.9.9", "127.0.0.2"],
            "clones share the rotation"
        );
        assert_eq!(
            sources.texts(),
            ["127.0.0.2-127.0.0.3", "127.0.1.1-127.0.1.2", "127.9.9.9"]
        );
    }

    #[test]
    fn processes_take_turns() {
        let turns = [0, 1].map(|index| {
            let mut one = sources(&["127.0.0.2-127.0.0.4"]).expect("addresses");
            one.share(Portion { index, count: 2 });
            turns(&one, 3)
        });
        assert_eq!(turns[0], ["127.0.0.2", "127.0.0.4", "127.0.0.3"]);
        assert_eq!(turns[1], ["127.0.0.3", "127.0.0.2", "127.0.0.4"]);
    }

    #[test]
    fn a_network_is_stored_as_a_range() {
        assert_eq!(
            sources(&["127.0.0.0/8"]).expect("network").count(),
            (1 << 24) - 2
        );
        assert_eq!(
            turns(&sources(&["::1/128"]).expect("one"), 2),
            ["::1", "::1"]
        );
        assert!(SourceAddresses::parse(&[]).expect("none").is_none());
    }

    #[test]
    fn invalid_addresses_are_refused_with_an_example() {
        for text in [
            "localhost",
            "127.0.0.9-127.0.0.2",
            "127.0.0.1-::1",
            "127.0.0.0/33",
            "::/8",
            "",
            "1.2.3.4/",
        ] {
            let message = sources(&[text]).expect_err(text).to_string();
            assert!(
                message.contains("127.0.0.2-127.0.0.50"),
                "{text}: {message}"
            );
        }
    }

    #[test]
    fn a_duplicate_or_foreign_address_is_refused() {
        let server: SocketAddr = "127.0.0.1:80".parse().expect("address");
        let refused = |texts: &[&str]| {
            sources(texts)
                .expect("parsed")
                .check(&server)
                .map_err(|error| error.to_string())
                .expect_err("refused")
        };

        for texts in [
            &["127.0.0.5", "127.0.0.5"][..],
            &["127.0.0.9", "127.0.0.5", "127.0.0.0-127.0.0.8"],
        ] {
            assert!(
                refused(texts).contains("127.0.0.5 is listed twice"),
                "{}",
                refused(texts)
            );
        }

        for text in ["0.0.0.0", "224.0.0.1", "255.255.255.255"] {
            assert!(
                refused(&[text]).contains("is not a host address"),
                "{}",
                refused(&[text])
            );
        }

        sources(&["127.0.0.6-127.0.0.9", "127.0.0.5"])
            .expect("parsed")
            .check(&server)
            .expect("neighbours");
    }

    #[test]
    fn an_address_of_another_machine_or_family_is_refused() {
        let server: SocketAddr = "127.0.0.1:80".parse().expect("address");
        sources(&["127.0.0.0/8"])
            .expect("network")
            .check(&server)
            .expect("the whole network is local");
        let foreign = sources(&["192.0.2.1"])
            .expect("parsed")
            .check(&server)
            .expect_err("not ours")
            .to_string();

        assert!(
            foreign.contains("192.0.2.1") && foreign.contains("ip address"),
            "{foreign}"
        );

        let family = sources(&["::1"])
            .expect("parsed")
            .check(&server)
            .expect_err("IPv6")
            .to_string();
        assert!(family.contains("IPv6"), "{family}");
    }
}
