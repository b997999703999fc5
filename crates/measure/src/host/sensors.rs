//! Clocks, temperatures and thermal throttling of processors, where the kernel and the machine report them. Virtual machines seldom do.

use crate::os::Root;

const PROCESSORS: &str = "/sys/devices/system/cpu";
/// Drivers of `hwmon` whose sensors are in processors.
const DRIVERS: [&str; 5] = ["coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal"];
/// Beginnings of the types of thermal zones that are processors.
const ZONES: [&str; 4] = ["x86_pkg_temp", "cpu", "soc", "TCPU"];
/// What no processor is: a sensor that says so is broken.
const ABSURD_CELSIUS: f64 = 150.0;

/// Files with temperatures of processors, in thousandths of a degree.
pub(super) fn of_processors(root: &Root) -> Vec<String> {
    let of_drivers = root.names("/sys/class/hwmon").into_iter().flat_map(|name| {
        let directory = format!("/sys/class/hwmon/{name}");
        let is_ours = root.value(format!("{directory}/name")).is_some_and(|name| DRIVERS.contains(&name.as_str()));
        let files = if is_ours { root.names(&directory) } else { Vec::new() };
        let is_reading = |file: &String| file.starts_with("temp") && file.ends_with("_input");
        files.into_iter().filter(is_reading).map(move |file| format!("{directory}/{file}")).collect::<Vec<_>>()
    });
    let found: Vec<String> = of_drivers.collect();
    if !found.is_empty() {
        return found;
    }
    let zones = root.names("/sys/class/thermal").into_iter().map(|name| format!("/sys/class/thermal/{name}"));
    let is_processor = |zone: &String| {
        root.value(format!("{zone}/type")).is_some_and(|kind| ZONES.iter().any(|begin| kind.starts_with(begin)))
    };
    zones.filter(is_processor).map(|zone| format!("{zone}/temp")).collect()
}

/// The highest of these readings.
pub(super) fn hottest(root: &Root, files: &[String]) -> Option<f64> {
    let celsius = |file: &String| {
        let thousandths: f64 = root.number(file)?;
        Some(thousandths / 1e3).filter(|celsius| celsius.is_finite() && (0.0..ABSURD_CELSIUS).contains(celsius))
    };
    files.iter().filter_map(celsius).reduce(f64::max)
}

/// The mean clock of these processors.
pub(super) fn frequency_hz(root: &Root, processors: &[u32]) -> Option<u64> {
    let of = |number: &u32| -> Option<u64> {
        root.number::<u64>(format!("{PROCESSORS}/cpu{number}/cpufreq/scaling_cur_freq"))?.checked_mul(1_000)
    };
    let known: Vec<u64> = processors.iter().filter_map(of).collect();
    let sum = known.iter().try_fold(0_u64, |sum, hz| sum.checked_add(*hz))?;
    sum.checked_div(known.len() as u64)
}

/// How often any of these processors, or the package around it, was slowed for its heat.
pub(super) fn throttles(root: &Root, processors: &[u32]) -> Option<u64> {
    let count = |number: u32, file: &str| -> Option<u64> {
        root.number(format!("{PROCESSORS}/cpu{number}/thermal_throttle/{file}"))
    };
    let cores = processors.iter().filter_map(|number| count(*number, "core_throttle_count"));
    // Every processor of a package shows the package's count.
    let packages = processors.iter().filter_map(|number| count(*number, "package_throttle_count")).max();
    cores.chain(packages).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_sensors_of_processors_count_and_the_hottest_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let put = |path: &str, text: &str| {
            let path = root.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(hottest(&root, &of_processors(&root)), None);
        put("/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
        put("/sys/class/thermal/thermal_zone0/temp", "61000\n");
        put("/sys/class/thermal/thermal_zone1/type", "acpitz\n");
        put("/sys/class/thermal/thermal_zone1/temp", "90000\n");
        assert_eq!(hottest(&root, &of_processors(&root)), Some(61.0));
        put("/sys/class/hwmon/hwmon0/name", "nvme\n");
        put("/sys/class/hwmon/hwmon0/temp1_input", "99000\n");
        put("/sys/class/hwmon/hwmon1/name", "k10temp\n");
        put("/sys/class/hwmon/hwmon1/temp1_input", "71500\n");
        put("/sys/class/hwmon/hwmon1/temp3_input", "999000\n");
        assert_eq!(hottest(&root, &of_processors(&root)), Some(71.5));
        assert_eq!((frequency_hz(&root, &[0]), throttles(&root, &[0])), (None, None));
        for (number, core) in [(0, 2), (1, 3)] {
            put(&format!("{PROCESSORS}/cpu{number}/thermal_throttle/core_throttle_count"), &core.to_string());
            put(&format!("{PROCESSORS}/cpu{number}/thermal_throttle/package_throttle_count"), "7");
        }
        assert_eq!(throttles(&root, &[0, 1]), Some(12));
    }
}
