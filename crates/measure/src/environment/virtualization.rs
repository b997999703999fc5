//! Whether this machine is real, virtual or a container, as far as traces show it.

use crate::os::{Root, proc};

/// Names what lies between this process and the hardware: `docker`, `kvm`, `podman on vmware`; `None` if nothing was
/// recognised, which proves nothing.
pub(super) fn detect(root: &Root, cpuinfo: &str) -> Option<String> {
    match (container(root), hypervisor(root, cpuinfo)) {
        (Some(container), Some(hypervisor)) => Some(format!("{container} on {hypervisor}")),
        (container, hypervisor) => container.or(hypervisor),
    }
}

fn container(root: &Root) -> Option<String> {
    if let Some(reported) = root.value("/run/systemd/container") {
        return Some(reported);
    }
    let traces = [
        ("/var/run/secrets/kubernetes.io", "kubernetes"),
        ("/run/.containerenv", "podman"),
        ("/.dockerenv", "docker"),
        ("/dev/lxd/sock", "lxd"),
    ];
    let by_trace = traces.into_iter().find(|(path, _)| root.exists(path)).map(|(_, name)| name);
    by_trace.or_else(|| container_of_group(&root.text("/proc/self/cgroup")?)).map(str::to_owned)
}

/// Container runtimes name the control groups that they make. Whole path elements are compared, since a service that
/// has `docker` in its name is no container.
fn container_of_group(text: &str) -> Option<&'static str> {
    let runtime = |element: &str| match element {
        _ if element.starts_with("kubepods") => Some("kubernetes"),
        _ if element.starts_with("libpod-") => Some("podman"),
        _ if element == "docker" || element.starts_with("docker-") && element.ends_with(".scope") => Some("docker"),
        _ if element == "lxc" || element.starts_with("lxc.payload") => Some("lxc"),
        _ => None,
    };
    text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).flat_map(|path| path.split('/')).find_map(runtime)
}

/// x86 processors report on a hypervisor by a flag, so there its absence is believed: a cloud's bare-metal machines carry
/// the same firmware names as its virtual ones. Elsewhere the names have to do.
fn hypervisor(root: &Root, cpuinfo: &str) -> Option<String> {
    if root.value("/proc/sys/kernel/osrelease").is_some_and(|kernel| kernel.to_ascii_lowercase().contains("microsoft"))
    {
        return Some("wsl".to_owned());
    }
    let firmware = ["sys_vendor", "product_name", "board_vendor", "bios_vendor"]
        .iter()
        .filter_map(|file| root.value(format!("/sys/class/dmi/id/{file}")))
        .collect::<Vec<_>>()
        .join("\n");
    match proc::field(cpuinfo, "flags") {
        Some(flags) if !flags.split_ascii_whitespace().any(|flag| flag == "hypervisor") => None,
        Some(_) => {
            let named = by_firmware(&firmware).map(str::to_owned).or_else(|| root.value("/sys/hypervisor/type"));
            Some(named.or_else(|| by_clock(root).map(str::to_owned)).unwrap_or_else(|| "unknown hypervisor".to_owned()))
        }
        None if firmware.contains(".metal") => None,
        None => by_firmware(&firmware).map(str::to_owned),
    }
}

fn by_firmware(firmware: &str) -> Option<&'static str> {
    // The clouds come first: several of them show QEMU somewhere as well.
    const NAMES: [(&str, &str); 15] = [
        ("Amazon EC2", "amazon nitro"),
        ("Google Compute Engine", "google compute engine"),
        ("Alibaba Cloud", "alibaba cloud"),
        ("OracleCloud", "oracle cloud"),
        ("DigitalOcean", "digitalocean"),
        ("Hetzner", "hetzner cloud"),
        ("OpenStack", "openstack"),
        ("VMware", "vmware"),
        ("VirtualBox", "virtualbox"),
        ("innotek", "virtualbox"),
        ("Xen", "xen"),
        ("Parallels", "parallels"),
        ("Microsoft Corporation\nVirtual Machine", "microsoft hyper-v"),
        ("KVM", "kvm"),
        ("QEMU", "qemu"),
    ];
    NAMES.into_iter().find(|(trace, _)| firmware.contains(trace)).map(|(_, name)| name)
}

/// Small virtual machines (Firecracker, for one) have no firmware tables, but their clocks have names.
fn by_clock(root: &Root) -> Option<&'static str> {
    let clocks = root.value("/sys/devices/system/clocksource/clocksource0/available_clocksource")?;
    clocks.split_ascii_whitespace().find_map(|clock| match clock {
        "kvm-clock" => Some("kvm"),
        "xen" => Some("xen"),
        _ if clock.starts_with("hyperv") => Some("microsoft hyper-v"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const VIRTUAL: &str = "flags : fpu hypervisor lm\n";
    const REAL: &str = "flags : fpu lm\n";

    fn detected(cpuinfo: &str, files: &[(&str, &str)]) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        for (path, text) in files {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        }
        detect(&root, cpuinfo)
    }

    #[test]
    fn a_container_in_a_virtual_machine_shows_both() {
        let files = [("/.dockerenv", ""), ("/sys/class/dmi/id/sys_vendor", "VMware, Inc.\n")];
        assert_eq!(detected(VIRTUAL, &files).as_deref(), Some("docker on vmware"));
    }

    #[test]
    fn bare_metal_of_a_cloud_is_not_virtual() {
        let files =
            [("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n"), ("/sys/class/dmi/id/product_name", "m7g.metal\n")];
        assert_eq!(detected(REAL, &files), None);
        assert_eq!(detected("CPU implementer : 0x41\n", &files), None);
    }

    #[test]
    fn a_virtual_machine_on_arm_is_known_by_its_firmware() {
        let files = [("/sys/class/dmi/id/sys_vendor", "QEMU\n")];
        assert_eq!(detected("CPU implementer : 0x41\n", &files).as_deref(), Some("qemu"));
    }

    #[test]
    fn a_maker_of_both_is_a_hypervisor_only_by_its_product() {
        let vendor = ("/sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n");
        let product = |name| [vendor, ("/sys/class/dmi/id/product_name", name)];
        let arm = "CPU implementer : 0x41\n";
        assert_eq!(detected(arm, &product("Virtual Machine\n")).as_deref(), Some("microsoft hyper-v"));
        assert_eq!(detected(arm, &product("Surface Pro 11\n")), None);
    }

    #[test]
    fn without_firmware_the_clock_tells_and_without_that_the_flag() {
        let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
        assert_eq!(detected(VIRTUAL, &[(clocks, "tsc kvm-clock\n")]).as_deref(), Some("kvm"));
        assert_eq!(detected(VIRTUAL, &[]).as_deref(), Some("unknown hypervisor"));
        assert_eq!(detected(REAL, &[]), None);
    }

    #[test]
    fn control_groups_betray_containers_but_not_services_about_them() {
        for (text, name) in [
            ("0::/kubepods.slice/kubepods-burstable.slice/cri-1.scope\n", Some("kubernetes")),
            ("4:memory:/docker/0123\n", Some("docker")),
            ("0::/system.slice/docker-0123.scope\n", Some("docker")),
            ("0::/machine.slice/libpod-0123.scope\n", Some("podman")),
            ("0::/system.slice/docker.service\n", None),
            ("0::/user.slice\nnonsense\n", None),
        ] {
            assert_eq!(container_of_group(text), name, "{text}");
        }
    }
}
