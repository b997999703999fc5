//! Facts about the host itself.

use crate::os::{Root, proc};

/// The distribution's name for itself.
pub(super) fn os(root: &Root) -> Option<String> {
    ["/etc/os-release", "/usr/lib/os-release"].iter().find_map(|path| pretty_name(&root.text(path)?))
}

/// `PRETTY_NAME` of an os-release file, which quotes values as a shell does; see os-release(5).
fn pretty_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?.trim();
    let unquoted = ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(value)
        .replace("\\\"", "\"");
    (!unquoted.is_empty()).then_some(unquoted)
}

/// Vendor and product from the firmware's tables, which virtual machines of the clouds fill with their type. Not the
/// serial number, which is secret to root.
pub(super) fn machine(root: &Root) -> Option<String> {
    let part = |file: &str| root.value(format!("/sys/class/dmi/id/{file}"));
    match (part("sys_vendor"), part("product_name")) {
        (Some(vendor), Some(product)) => Some(format!("{vendor} {product}")),
        (vendor, product) => vendor.or(product),
    }
}

/// The processor model from `/proc/cpuinfo`. Arm kernels print numbers instead of a name; they are given as they are.
pub(super) fn cpu_model(cpuinfo: &str) -> Option<String> {
    let named = ["model name", "cpu", "uarch"].iter().find_map(|key| proc::field(cpuinfo, key));
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        return Some(name.to_owned());
    }
    let implementer = proc::field(cpuinfo, "CPU implementer")?;
    let part = proc::field(cpuinfo, "CPU part")?;
    Some(format!("Arm implementer {implementer} part {part}"))
}

/// First number of `/proc/loadavg`.
pub(super) fn load_average_1m(text: &str) -> Option<f64> {
    sound(text.split_ascii_whitespace().next()?)
}

/// `some avg10` of a file in `/proc/pressure`, in percent.
pub(super) fn pressure_percent(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    sound(some.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg10="))?)
}

/// A number that JSON can hold and that a load can be.
fn sound(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_name_of_the_distribution_is_unquoted() {
        for (text, name) in [
            ("ID=x\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n", Some("Debian GNU/Linux 13 (trixie)")),
            ("PRETTY_NAME='Void'", Some("Void")),
            ("PRETTY_NAME=Alpine", Some("Alpine")),
            ("PRETTY_NAME=\"\"", None),
            ("PRETTY_NAME=\"", Some("\"")),
            ("NAME=x", None),
        ] {
            assert_eq!(pretty_name(text).as_deref(), name, "{text}");
        }
    }

    #[test]
    fn every_architecture_names_its_processor_in_its_own_way() {
        for (text, model) in [
            ("vendor_id\t: X\nmodel\t\t: 7\nmodel name\t: Xeon\n", Some("Xeon")),
            ("processor\t: 0\ncpu\t\t: POWER10\n", Some("POWER10")),
            ("CPU implementer\t: 0x41\nCPU part\t: 0xd40\n", Some("Arm implementer 0x41 part 0xd40")),
            ("CPU implementer\t: 0x41\n", None),
            ("", None),
        ] {
            assert_eq!(cpu_model(text).as_deref(), model, "{text}");
        }
    }

    #[test]
    fn a_load_that_is_no_number_is_unknown() {
        assert_eq!(load_average_1m("1.25 0.1 0.1 1/2 3"), Some(1.25));
        for text in ["", "NaN", "inf", "-1", "x"] {
            assert_eq!(load_average_1m(text), None, "{text}");
        }
        assert_eq!(pressure_percent("full avg10=3.00\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "(?s).{0,200}") {
            let _ = (pretty_name(&text), cpu_model(&text), load_average_1m(&text), pressure_percent(&text));
        }
    }
}
