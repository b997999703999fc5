//! The keys of a `sim:` address: what each one plants, and how it is read and written.

use std::fmt::Write as _;

use super::{Burst, Cache, Cap, SimulatedOptions, Spread, Stall, Tier, Time};
use crate::TargetError;
use model::units::{Bytes, Nanos};

/// One key of a `sim:` address.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// How it is written.
    pub name: &'static str,
    /// The form of its value, such as `RATE:LENGTH`.
    pub value: &'static str,
    /// What it plants, with the unit.
    pub meaning: &'static str,
    read: fn(&mut SimulatedOptions, &str) -> Result<(), String>,
    write: fn(&SimulatedOptions) -> Option<String>,
}

/// Every key, in the order in which an address is printed: a burst comes after the cap that it lifts.
pub const KEYS: &[Key] = &[
    Key {
        name: "service",
        value: "DURATION",
        meaning: "service time of a request without queueing: the mean, or the median where the spread is lognormal",
        read: |options, text| positive(duration(text)?, |service| options.service = service),
        write: |options| options.tiers.is_empty().then(|| exact(options.service)),
    },
    Key {
        name: "tiers",
        value: "SHARE:DURATION+SHARE:DURATION",
        meaning: "in place of `service`: tiers, each with its share of requests (0 to 1, one in total) and service time",
        read: |options, text| {
            options.tiers = list(text, |part| {
                let (share, service) = pair(part)?;
                let tier = Tier { share: self::share(share)?, service: duration(service)? };
                if tier.service.0 == 0 { Err("a service time above 0 is needed".to_owned()) } else { Ok(tier) }
            })?;
            let sum: f64 = options.tiers.iter().map(|tier| tier.share).sum();
            if (sum - 1.0).abs() < 1e-6 { Ok(()) } else { Err(format!("its shares add up to {sum}, not to 1")) }
        },
        write: |options| joined(&options.tiers, |Tier { share, service }| format!("{share}:{}", exact(*service))),
    },
    Key {
        name: "spread",
        value: "fixed|exponential|lognormal:SIGMA",
        meaning: "how service times are spread; SIGMA is the standard deviation of their natural logarithm, 0 to 5",
        read: |options, text| {
            options.spread = match (text, text.strip_prefix("lognormal:")) {
                ("fixed", _) => Spread::Fixed,
                ("exponential", _) => Spread::Exponential,
                (_, Some(sigma)) => Spread::Lognormal { sigma: number(sigma, 0.0, 5.0)? },
                _ => return Err("it is `fixed`, `exponential` or `lognormal:SIGMA`".to_owned()),
            };
            Ok(())
        },
        write: |options| {
            Some(match options.spread {
                Spread::Fixed => "fixed".to_owned(),
                Spread::Exponential => "exponential".to_owned(),
                Spread::Lognormal { sigma } => format!("lognormal:{sigma}"),
            })
        },
    },
    Key {
        name: "servers",
        value: "COUNT",
        meaning: "requests served at the same time, 1 to 1000000: the knee lies where as many are outstanding",
        read: |options, text| {
            let servers = text.parse().ok().filter(|servers| (1..=1_000_000).contains(servers));
            options.servers = servers.ok_or("a whole number from 1 to 1000000 is needed")?;
            Ok(())
        },
        write: |options| Some(options.servers.to_string()),
    },
    Key {
        name: "bandwidth",
        value: "SIZE",
        meaning: "bytes that one server moves in a second (`2G` is 2^31): bytes / bandwidth is added to the service time",
        read: |options, text| {
            options.bandwidth = Some(size(text)?);
            Ok(())
        },
        write: |options| options.bandwidth.map(|bandwidth| bandwidth.0.to_string()),
    },
    Key {
        name: "iops_cap",
        value: "RATE",
        meaning: "requests a second at most; others queue in order",
        read: |options, text| {
            options.iops = Some(Cap { per_s: rate(text)?, burst: None });
            Ok(())
        },
        write: |options| options.iops.map(|cap| cap.per_s.to_string()),
    },
    Key {
        name: "io_unit",
        value: "SIZE",
        meaning: "bytes that count as one request against `iops_cap`: a larger request counts as several",
        read: |options, text| {
            options.io_unit = Some(size(text)?);
            Ok(())
        },
        write: |options| options.io_unit.map(|unit| unit.0.to_string()),
    },
    Key {
        name: "burst",
        value: "RATE:LENGTH",
        meaning: "a bucket, full at first, that lets RATE requests a second through for LENGTH; what `iops_cap` leaves \
                  unused refills it",
        read: |options, text| read_burst(options.iops.as_mut(), text).map_err(|why| why.replace("CAP", "iops_cap")),
        write: |options| options.iops?.burst.map(|Burst { per_s, length }| format!("{per_s}:{}", exact(length))),
    },
    Key {
        name: "mbps_cap",
        value: "RATE",
        meaning: "MB (1,000,000 bytes) a second at most; requests queue in order",
        read: |options, text| {
            options.mbps = Some(Cap { per_s: rate(text)?, burst: None });
            Ok(())
        },
        write: |options| options.mbps.map(|cap| cap.per_s.to_string()),
    },
    Key {
        name: "burst_mbps",
        value: "RATE:LENGTH",
        meaning: "as `burst`, in MB a second, above `mbps_cap`",
        read: |options, text| read_burst(options.mbps.as_mut(), text).map_err(|why| why.replace("CAP", "mbps_cap")),
        write: |options| options.mbps?.burst.map(|Burst { per_s, length }| format!("{per_s}:{}", exact(length))),
    },
    Key {
        name: "read_iops_cap",
        value: "RATE",
        meaning: "reads a second at most, besides `iops_cap`",
        read: |options, text| {
            options.read_iops = Some(Cap { per_s: rate(text)?, burst: None });
            Ok(())
        },
        write: |options| options.read_iops.map(|cap| cap.per_s.to_string()),
    },
    Key {
        name: "write_iops_cap",
        value: "RATE",
        meaning: "writes a second at most, besides `iops_cap`",
        read: |options, text| {
            options.write_iops = Some(Cap { per_s: rate(text)?, burst: None });
            Ok(())
        },
        write: |options| options.write_iops.map(|cap| cap.per_s.to_string()),
    },
    Key {
        name: "volumes",
        value: "COUNT",
        meaning: "volumes, each with caps and servers of its own, 1 to 26; only `plimsoll io sweep --together` loads more \
                  than the first",
        read: |options, text| {
            let volumes = text.parse().ok().filter(|volumes| (1..=26).contains(volumes));
            options.volumes = volumes.ok_or("a whole number from 1 to 26 is needed")?;
            Ok(())
        },
        write: |options| (options.volumes > 1).then(|| options.volumes.to_string()),
    },
    Key {
        name: "machine_iops_cap",
        value: "RATE",
        meaning: "requests a second at most of all volumes, as the limit of a machine",
        read: |options, text| {
            options.machine_iops = Some(Cap { per_s: rate(text)?, burst: None });
            Ok(())
        },
        write: |options| options.machine_iops.map(|cap| cap.per_s.to_string()),
    },
    Key {
        name: "machine_mbps_cap",
        value: "RATE",
        meaning: "MB (1,000,000 bytes) a second at most of all volumes",
        read: |options, text| {
            options.machine_mbps = Some(Cap { per_s: rate(text)?, burst: None });
            Ok(())
        },
        write: |options| options.machine_mbps.map(|cap| cap.per_s.to_string()),
    },
    Key {
        name: "cache",
        value: "SIZE",
        meaning: "a cache in front of caps and servers that keeps the blocks (8 KiB) touched last; reads of what it holds \
                  take `cache_service`",
        read: |options, text| {
            let size = size(text)?;
            let service = options.cache.map_or(Cache::DEFAULT_SERVICE, |cache| cache.service);
            options.cache = Some(Cache { size, service });
            Ok(())
        },
        write: |options| options.cache.map(|cache| cache.size.0.to_string()),
    },
    Key {
        name: "cache_service",
        value: "DURATION",
        meaning: "service time of a read from the cache (default: 20us)",
        read: |options, text| {
            let service = duration(text)?;
            let cache = options.cache.as_mut().ok_or("it needs `cache=SIZE`")?;
            positive(service, |service| cache.service = service)
        },
        write: |options| options.cache.map(|cache| exact(cache.service)),
    },
    Key {
        name: "stall",
        value: "AT:LENGTH+AT:LENGTH",
        meaning: "from AT after opening, nothing begins to be served for LENGTH",
        read: |options, text| {
            options.stalls = list(text, |part| {
                let (at, length) = pair(part)?;
                Ok(Stall { at: duration(at)?, length: duration(length)? })
            })?;
            options.stalls.sort_by_key(|stall| stall.at);
            Ok(())
        },
        write: |options| joined(&options.stalls, |Stall { at, length }| format!("{}:{}", exact(*at), exact(*length))),
    },
    Key {
        name: "drift",
        value: "PERCENT%/UNIT",
        meaning: "service times grow by this much of themselves in each hour (`10%/h`), minute (`/m`) or second (`/s`) \
                  since opening",
        read: |options, text| {
            let wanted = || "write `drift=10%/h`".to_owned();
            let (percent, unit) = text.split_once("%/").ok_or_else(wanted)?;
            let units_per_h = match unit {
                "h" => 1.0,
                "m" => 60.0,
                "s" => 3_600.0,
                _ => return Err(wanted()),
            };
            options.drift_pct_per_h = number(percent, 0.0, 1e6)? * units_per_h;
            Ok(())
        },
        write: |options| (options.drift_pct_per_h > 0.0).then(|| format!("{}%/h", options.drift_pct_per_h)),
    },
    Key {
        name: "errors",
        value: "SHARE",
        meaning: "share of requests that fail after their service time, 0 to 1",
        read: |options, text| {
            options.errors = share(text)?;
            Ok(())
        },
        write: |options| (options.errors > 0.0).then(|| options.errors.to_string()),
    },
    Key {
        name: "seed",
        value: "NUMBER",
        meaning: "seed of service times, tiers and errors",
        read: |options, text| {
            options.seed = text.parse().map_err(|_| "a whole number is needed")?;
            Ok(())
        },
        write: |options| Some(options.seed.to_string()),
    },
    Key {
        name: "clock",
        value: "real|simulated",
        meaning: "whether time really passes, or only in the simulation, as fast as it can be calculated",
        read: |options, text| {
            options.time = match text {
                "real" => Time::Real,
                "simulated" => Time::Simulated,
                _ => return Err("it is `real` or `simulated`".to_owned()),
            };
            Ok(())
        },
        write: |options| (options.time == Time::Simulated).then(|| "simulated".to_owned()),
    },
];

/// Options from the pairs of an address, in whatever order they came.
pub(super) fn read(pairs: &[(String, String)]) -> Result<SimulatedOptions, TargetError> {
    let wrong = |key: &str, value: &str, wanted: &str| {
        TargetError::Shape(format!("`sim:` does not understand `{key}={value}`: {wanted}"))
    };
    for (key, value) in pairs {
        if KEYS.iter().all(|known| known.name != key) {
            return Err(wrong(key, value, &format!("its keys are {}", names())));
        }
    }
    let mut options = SimulatedOptions::default();
    for key in KEYS {
        for (_, value) in pairs.iter().filter(|(name, _)| name == key.name) {
            if key.name == "tiers" && pairs.iter().any(|(name, _)| name == "service") {
                return Err(wrong(key.name, value, "it takes the place of `service`, so give one of them"));
            }
            (key.read)(&mut options, value).map_err(|wanted| wrong(key.name, value, &wanted))?;
        }
    }
    Ok(options)
}

/// What is planted, by key, as it would be written.
pub(super) fn written(options: &SimulatedOptions) -> impl Iterator<Item = (&'static str, String)> {
    KEYS.iter().filter_map(|key| Some((key.name, (key.write)(options)?)))
}

fn names() -> String {
    let mut names = String::new();
    for (index, key) in KEYS.iter().enumerate() {
        let before = match index {
            0 => "",
            _ if index + 1 == KEYS.len() => " and ",
            _ => ", ",
        };
        // Writing to a string cannot fail.
        let _ = write!(names, "{before}{}", key.name);
    }
    names
}

fn read_burst(cap: Option<&mut Cap>, text: &str) -> Result<(), String> {
    let (per_s, length) = pair(text)?;
    let burst = Burst { per_s: rate(per_s)?, length: duration(length)? };
    let cap = cap.ok_or("it needs `CAP=RATE`, to which it falls back")?;
    if burst.per_s <= cap.per_s {
        return Err(format!("its rate must be above `CAP={}`", cap.per_s));
    }
    cap.burst = Some(burst);
    Ok(())
}

fn pair(text: &str) -> Result<(&str, &str), String> {
    text.split_once(':').ok_or_else(|| format!("`{text}` has no `:` between its two parts"))
}

fn list<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split('+').map(read).collect()
}

fn joined<T>(items: &[T], write: impl Fn(&T) -> String) -> Option<String> {
    (!items.is_empty()).then(|| items.iter().map(write).collect::<Vec<_>>().join("+"))
}

fn duration(text: &str) -> Result<Nanos, String> {
    text.parse().map_err(|error: model::units::UnitError| error.to_string())
}

fn positive(duration: Nanos, set: impl FnOnce(Nanos)) -> Result<(), String> {
    if duration.0 == 0 {
        return Err("a duration above 0 is needed".to_owned());
    }
    set(duration);
    Ok(())
}

fn size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error: model::units::UnitError| error.to_string())?;
    if size.0 == 0 { Err("a size above 0 is needed".to_owned()) } else { Ok(size) }
}

fn number(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("a number from {least} to {most} is needed"))
}

fn share(text: &str) -> Result<f64, String> {
    number(text, 0.0, 1.0)
}

/// From one in 11 days to one in a nanosecond: what lies outside cannot be distinguished in nanoseconds.
fn rate(text: &str) -> Result<f64, String> {
    number(text, 1e-6, 1e9)
}

/// Written so that it is read back to the nanosecond.
fn exact(Nanos(ns): Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let unit = units.into_iter().find(|(scale, _)| ns > 0 && ns.is_multiple_of(*scale));
    unit.map_or_else(|| format!("{ns}ns"), |(scale, unit)| format!("{}{unit}", ns / scale))
}
