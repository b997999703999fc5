//! Checks of processor, memory, kernel and neighbours.

use super::{Ability, Capabilities, Check, Demand, Limit, Limits, User};
use model::record::Environment;
use model::units::{Bytes, Nanos};

/// Data files, redo files and a ring for each thread stay below this.
const ENOUGH_OPEN_FILES: u64 = 1_024;
/// What the kernel gives unless asked otherwise.
const DEFAULT_TIMER_SLACK_NS: u64 = 50_000;
/// Share of the processors that others may use before figures suffer.
const QUIET_LOAD: f64 = 0.25;
/// Share of the time in which others may wait for storage, in percent.
const QUIET_PRESSURE_PERCENT: f64 = 5.0;
/// Memory to leave beside the buffer cache: sessions, buffers of large reads, the rest of the machine.
const MEMORY_BESIDE_CACHE_BYTES: u64 = 64 << 20;

pub(super) fn checks(environment: &Environment, capabilities: &Capabilities, demand: &Demand) -> Vec<Check> {
    let limits = &capabilities.limits;
    [
        io_uring(&capabilities.io_uring, limits),
        open_files(limits),
        locked_memory(limits, demand),
        memory(environment, demand),
        clock(environment),
        timer_slack(limits),
        governor(environment),
        other_load(environment),
        storage_pressure(environment),
        virtualization(environment),
        user(limits),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn io_uring(ability: &Ability, limits: &Limits) -> Option<Check> {
    const TOPIC: &str = "io_uring";
    let reason = match ability {
        Ability::Untried => return None,
        Ability::Usable => return Some(Check::good(TOPIC, "io_uring can be used")),
        Ability::Refused { reason } => reason,
    };
    let remedy = match limits.io_uring_disabled {
        Some(2) => "kernel.io_uring_disabled is 2: as root, `sysctl kernel.io_uring_disabled=0`",
        Some(1) => {
            "kernel.io_uring_disabled is 1: join the group of kernel.io_uring_group, or as root \
             `sysctl kernel.io_uring_disabled=0`"
        }
        Some(_) => "the kernel would allow it: let the container's seccomp profile pass io_uring_setup",
        None => {
            "it needs a kernel built with io_uring and, in a container, a seccomp profile that passes io_uring_setup"
        }
    };
    Some(Check::advice(
        TOPIC,
        format!("io_uring is refused: {reason}"),
        format!("plain system calls are used instead and cost more processor time per read; {remedy}"),
    ))
}

fn open_files(limits: &Limits) -> Option<Check> {
    const TOPIC: &str = "open files";
    match limits.open_files? {
        Limit::AtMost(files) if files < ENOUGH_OPEN_FILES => Some(Check::advice(
            TOPIC,
            format!("at most {files} files may be open"),
            format!("raise it with `ulimit -n {ENOUGH_OPEN_FILES}` before large runs"),
        )),
        Limit::AtMost(files) => Some(Check::good(TOPIC, format!("up to {files} files may be open"))),
        Limit::Unlimited => Some(Check::good(TOPIC, "any number of files may be open")),
    }
}

/// Root with CAP_IPC_LOCK is not bound by the limit; whether a root in a container has that right is not known here, so
/// root is believed.
fn locked_memory(limits: &Limits, demand: &Demand) -> Option<Check> {
    const TOPIC: &str = "locked memory";
    let limit = limits.locked_memory_bytes?;
    let wanted = demand.cache_bytes?;
    match limit {
        Limit::AtMost(bytes) if bytes < wanted && limits.user != Some(User::Root) => Some(Check::advice(
            TOPIC,
            format!("{} may be locked, the buffer cache has {}", Bytes(bytes), Bytes(wanted)),
            format!(
                "a cache registered with io_uring costs less CPU per read. Set `memlock` to {} KiB: \
                 /etc/security/limits.conf, LimitMEMLOCK= of a systemd unit, --ulimit memlock of a container",
                wanted.div_ceil(1024)
            ),
        )),
        Limit::AtMost(bytes) if bytes < wanted => {
            Some(Check::good(TOPIC, format!("{} may be locked, which does not bind root", Bytes(bytes))))
        }
        Limit::AtMost(bytes) => Some(Check::good(TOPIC, format!("{} may be locked", Bytes(bytes)))),
        Limit::Unlimited => Some(Check::good(TOPIC, "any amount of memory may be locked")),
    }
}

fn memory(environment: &Environment, demand: &Demand) -> Option<Check> {
    const TOPIC: &str = "memory";
    let wanted = demand.cache_bytes?;
    let needed = wanted.saturating_add(MEMORY_BESIDE_CACHE_BYTES);
    let available = environment.memory_available_bytes;
    // A limit counts only where it is tighter than the memory that is free.
    let limit = environment.memory_limit_bytes.filter(|limit| available.is_none_or(|available| *limit < available));
    let (room, whose) = match (limit, available) {
        (Some(limit), _) => (limit, "the control group's memory limit"),
        (None, available) => (available?, "the available memory"),
    };
    let finding = format!("{whose} is {}, the buffer cache has {}", Bytes(room), Bytes(wanted));
    Some(if needed <= room {
        Check::good(TOPIC, finding)
    } else if limit.is_some() {
        Check::problem(
            TOPIC,
            finding,
            format!(
                "the kernel would kill the run: use a smaller `--cache`, or raise the limit to {} or more",
                Bytes(needed)
            ),
        )
    } else {
        Check::problem(
            TOPIC,
            finding,
            "the machine would swap and the figures would be those of its swap space: use a smaller `--cache`, or end \
             other programs",
        )
    })
}

fn clock(environment: &Environment) -> Option<Check> {
    const TOPIC: &str = "clock source";
    let clock = environment.clocksource.as_deref()?;
    // Read in user space through the vDSO; all others cost a system call, and hpet and acpi_pm a slow device register.
    let is_fast = matches!(clock, "tsc" | "kvm-clock" | "arch_sys_counter" | "timebase" | "tod" | "riscv_clocksource")
        || clock.starts_with("hyperv_clocksource");
    Some(if is_fast {
        Check::good(TOPIC, format!("the clock source is {clock}"))
    } else {
        Check::advice(
            TOPIC,
            format!("the clock source is {clock}, which takes a system call for each reading"),
            "every operation is stamped, so timing itself takes processor time: if tsc is among available_clocksource in \
             /sys/devices/system/clocksource/clocksource0, as root write it to current_clocksource there",
        )
    })
}

fn timer_slack(limits: &Limits) -> Option<Check> {
    const TOPIC: &str = "timer slack";
    let slack = limits.timer_slack_ns?;
    Some(if slack <= DEFAULT_TIMER_SLACK_NS {
        Check::good(TOPIC, format!("sleeps end at most {} late", Nanos(slack)))
    } else {
        Check::advice(
            TOPIC,
            format!("sleeps may end {} late", Nanos(slack)),
            "think times and paced rates get coarse: start Plimsoll from a service or shell without a raised timer slack \
             (TimerSlackNSec= in systemd)",
        )
    })
}

fn governor(environment: &Environment) -> Option<Check> {
    const TOPIC: &str = "processor frequency";
    let governor = environment.cpu_governor.as_deref()?;
    Some(match governor {
        "powersave" | "conservative" => Check::advice(
            TOPIC,
            format!("the frequency governor is {governor}"),
            "short waits end on a slow processor, so latency looks worse than it need be: as root, \
             `cpupower frequency-set -g performance`, or note that figures include it",
        ),
        _ => Check::good(TOPIC, format!("the frequency governor is {governor}")),
    })
}

fn other_load(environment: &Environment) -> Option<Check> {
    const TOPIC: &str = "other load";
    let load = environment.load_average_1m?;
    let cpus = environment.cpus?;
    let processors = if cpus == 1 { "processor" } else { "processors" };
    let finding = format!("the load average of the last minute is {load:.2} on {cpus} {processors}");
    Some(if load <= QUIET_LOAD * f64::from(cpus) {
        Check::good(TOPIC, finding)
    } else {
        Check::advice(
            TOPIC,
            finding,
            "something else is working: find it with `top`, end it, or measure when the machine is quiet",
        )
    })
}

fn storage_pressure(environment: &Environment) -> Option<Check> {
    const TOPIC: &str = "storage pressure";
    let percent = environment.io_pressure_percent?;
    let finding = format!("programs waited for storage in {percent:.1}% of the last ten seconds");
    Some(if percent <= QUIET_PRESSURE_PERCENT {
        Check::good(TOPIC, finding)
    } else {
        Check::advice(
            TOPIC,
            finding,
            "others use the storage too and share its limits: find them with `iotop` or `pidstat -d`, or measure later",
        )
    })
}

fn virtualization(environment: &Environment) -> Option<Check> {
    const TOPIC: &str = "virtualization";
    let kind = environment.virtualization.as_deref()?;
    Some(Check::advice(
        TOPIC,
        format!("this machine is virtual or a container: {kind}"),
        "a neighbour's load and burst credits can change results from hour to hour: repeat runs at different times \
        before you conclude",
    ))
}

fn user(limits: &Limits) -> Option<Check> {
    const TOPIC: &str = "user";
    Some(match limits.user? {
        User::Root => Check::good(TOPIC, "running as root: raw devices can be opened too"),
        User::Ordinary => Check::good(TOPIC, "running as an ordinary user, which is enough for files"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    fn status(check: Option<Check>) -> Status {
        check.unwrap().status
    }

    fn refused(io_uring_disabled: Option<u32>) -> Check {
        let ability = Ability::Refused { reason: "Operation not permitted (os error 1)".to_owned() };
        io_uring(&ability, &Limits { io_uring_disabled, ..Limits::default() }).unwrap()
    }

    #[test]
    fn a_refused_ring_says_why_and_which_switch_refuses_it() {
        assert_eq!(refused(None).finding, "io_uring is refused: Operation not permitted (os error 1)");
        assert!(refused(Some(2)).advice.unwrap().contains("kernel.io_uring_disabled is 2"));
        assert!(refused(Some(1)).advice.unwrap().contains("io_uring_group"));
        assert!(refused(Some(0)).advice.unwrap().contains("seccomp"));
        assert_eq!(status(io_uring(&Ability::Usable, &Limits::default())), Status::Good);
    }

    #[test]
    fn few_open_files_deserve_advice() {
        let of = |limit| status(open_files(&Limits { open_files: Some(limit), ..Limits::default() }));
        assert_eq!(of(Limit::AtMost(1_023)), Status::Advice);
        assert_eq!(of(Limit::AtMost(1_024)), Status::Good);
        assert_eq!(of(Limit::Unlimited), Status::Good);
    }

    #[test]
    fn locked_memory_must_hold_the_cache_except_for_root() {
        let demand = Demand { cache_bytes: Some(64 << 20), ..Demand::default() };
        let of = |bytes, user| {
            let limits = Limits { locked_memory_bytes: Some(Limit::AtMost(bytes)), user, ..Limits::default() };
            locked_memory(&limits, &demand).unwrap()
        };
        let small = of(8 << 20, Some(User::Ordinary));
        assert_eq!(small.finding, "8 MiB may be locked, the buffer cache has 64 MiB");
        assert!(small.advice.unwrap().contains("`memlock` to 65536 KiB"));
        assert_eq!(of(8 << 20, Some(User::Root)).status, Status::Good);
        assert_eq!(of(64 << 20, Some(User::Ordinary)).status, Status::Good);
    }

    #[test]
    fn the_tighter_of_limit_and_free_memory_decides() {
        let of = |available, limit, cache| {
            let environment =
                Environment { memory_available_bytes: available, memory_limit_bytes: limit, ..Environment::default() };
            memory(&environment, &Demand { cache_bytes: Some(cache), ..Demand::default() })
        };
        const GIB: u64 = 1 << 30;
        assert_eq!(status(of(Some(4 * GIB), Some(8 * GIB), GIB)), Status::Good);
        let killed = of(Some(4 * GIB), Some(GIB), GIB).unwrap();
        assert_eq!(killed.status, Status::Problem);
        assert_eq!(killed.finding, "the control group's memory limit is 1 GiB, the buffer cache has 1 GiB");
        assert!(of(Some(GIB), Some(8 * GIB), GIB).unwrap().advice.unwrap().contains("swap"));
        assert_eq!(status(of(None, Some(GIB), u64::MAX)), Status::Problem);
        assert_eq!(of(None, None, GIB), None);
    }

    #[test]
    fn only_clocks_read_without_a_system_call_are_good() {
        for (name, expected) in [
            ("tsc", Status::Good),
            ("kvm-clock", Status::Good),
            ("arch_sys_counter", Status::Good),
            ("hyperv_clocksource_tsc_page", Status::Good),
            ("xen", Status::Advice),
            ("hpet", Status::Advice),
            ("acpi_pm", Status::Advice),
        ] {
            let environment = Environment { clocksource: Some(name.into()), ..Environment::default() };
            assert_eq!(status(clock(&environment)), expected, "{name}");
        }
    }

    #[test]
    fn coarse_sleeps_and_slow_processors_deserve_advice() {
        let slack = |ns| status(timer_slack(&Limits { timer_slack_ns: Some(ns), ..Limits::default() }));
        assert_eq!((slack(50_000), slack(50_001)), (Status::Good, Status::Advice));
        let of =
            |name: &str| status(governor(&Environment { cpu_governor: Some(name.into()), ..Environment::default() }));
        assert_eq!((of("performance"), of("schedutil"), of("powersave")), (Status::Good, Status::Good, Status::Advice));
    }

    #[test]
    fn load_is_judged_by_the_processors_that_carry_it() {
        let of = |load, cpus| {
            other_load(&Environment { load_average_1m: Some(load), cpus: Some(cpus), ..Environment::default() })
                .unwrap()
        };
        assert_eq!(of(1.0, 2).status, Status::Advice);
        assert_eq!(of(1.0, 64).status, Status::Good);
        assert_eq!(of(0.1, 1).finding, "the load average of the last minute is 0.10 on 1 processor");
        let waiting = |percent| {
            status(storage_pressure(&Environment { io_pressure_percent: Some(percent), ..Environment::default() }))
        };
        assert_eq!((waiting(1.0), waiting(40.0)), (Status::Good, Status::Advice));
    }

    #[test]
    fn a_virtual_machine_is_named() {
        let environment = Environment { virtualization: Some("docker on kvm".into()), ..Environment::default() };
        let check = virtualization(&environment).unwrap();
        assert_eq!(check.status, Status::Advice);
        assert!(check.finding.ends_with("docker on kvm"));
    }
}
